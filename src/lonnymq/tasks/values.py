"""Values as JSON and back, by the annotation of the parameter they are for."""

import base64
import binascii
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, ClassVar, Protocol
from uuid import UUID

from lonnymq.tasks.value_path import ATOMS, InvalidValue, ValuePath
from lonnymq.texts import shown

# The most characters of an Enum's value.
MAX_MEMBER = 10_000
# What JSON has beside arrays and objects.
SCALARS = (str, int, float, type(None))


class Converter(Protocol):
    """Both ways refuse what is not as `expected`, naming the path where it was found."""

    # What kinds of JSON values it may be able to read.
    reads: ClassVar[tuple[type[Any], ...]]

    @property
    def expected(self) -> str: ...
    def to_json(self, path: ValuePath, value: Any) -> Any: ...
    def from_json(self, path: ValuePath, value: Any) -> Any: ...


@dataclass(frozen=True)
class Plain:
    """What JSON knows itself."""

    reads: ClassVar[tuple[type[Any], ...]] = SCALARS

    expected: str
    kinds: tuple[type[Any], ...]

    def to_json(self, path: ValuePath, value: Any) -> Any:
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if not isinstance(value, self.kinds) or not is_finite:
            raise path.refuse(value, self)
        return value

    from_json = to_json


@dataclass(frozen=True)
class Coded:
    """What JSON holds as a text or a number that can be read back."""

    reads: ClassVar[tuple[type[Any], ...]] = SCALARS

    expected: str
    kind: type[Any]
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    is_text: bool = True
    # Python's own readers put a text that they refuse into their errors, however long it is.
    most: int = 100

    def to_json(self, path: ValuePath, value: Any) -> Any:
        # A datetime is a date, but not one that could be read back.
        if not isinstance(value, self.kind) or (self.kind is date and isinstance(value, datetime)):
            raise path.refuse(value, self)
        return self.write(value)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        is_right = isinstance(value, str) if self.is_text else isinstance(value, int | float)
        try:
            if is_right and (not self.is_text or len(value) <= self.most):
                return self.read(value)
        except (ValueError, OverflowError, InvalidOperation, binascii.Error):
            pass
        raise path.refuse(value, self)


@dataclass(frozen=True)
class Anything:
    """A parameter without an annotation: what JSON gives back as it was."""

    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    expected: str = "made of what JSON knows (annotate the parameter to pass anything else)"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if type(value) is list:
            return [self.to_json(path.at(index), item) for index, item in enumerate(value)]
        if type(value) is dict:
            return {self._key(path, key): self.to_json(path.at(key), one) for key, one in value.items()}
        if value is None or (type(value) in (str, bool, int, float) and value == value):
            return value
        raise path.refuse(value, self)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        return value

    def _key(self, path: ValuePath, key: Any) -> str:
        if type(key) is not str:
            raise path.refuse(key, "a mapping whose keys are strings")
        return key


@dataclass(frozen=True)
class Choice:
    """A Literal; members of an Enum in it are written as their values."""

    reads: ClassVar[tuple[type[Any], ...]] = SCALARS

    values: tuple[Any, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(repr, self.values))}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not any(_is_same(value, one) for one in self.values):
            raise path.refuse(value, self)
        written = value.value if isinstance(value, Enum) else value
        found = self.from_json(path, written)
        if not _is_same(found, value):
            raise path.refuse(value, lambda: f"distinct in JSON: this would come back as {shown(found)}")
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        for one in self.values:
            if _is_same(value, one.value if isinstance(one, Enum) else one):
                return one
        raise path.refuse(value, self)


def _is_same(one: Any, other: Any) -> bool:
    """1, True and a member of an IntEnum are equal, and not the same."""
    return type(one) is type(other) and bool(one == other)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class Member:
    """A member of an Enum, as its value."""

    reads: ClassVar[tuple[type[Any], ...]] = SCALARS

    kind: type[Enum]

    @property
    def expected(self) -> str:
        return f"a member of {self.kind.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, self.kind):
            raise path.refuse(value, self)
        return value.value

    def from_json(self, path: ValuePath, value: Any) -> Any:
        # An Enum puts what it refuses into its error, however long it is.
        is_short = isinstance(value, SCALARS) and not (isinstance(value, str) and len(value) > MAX_MEMBER)
        try:
            if is_short:
                return self.kind(value)
        # A _missing_ of the user's own may meet what it does not expect.
        except (ValueError, TypeError):
            pass
        raise path.refuse(value, lambda: f"the value of {self.expected}")


@dataclass(frozen=True)
class Items:
    """A list, a set or a tuple of any length."""

    reads: ClassVar[tuple[type[Any], ...]] = (list,)

    expected: str
    item: Converter
    kinds: tuple[type[Any], ...]
    make: Callable[[list[Any]], Any]

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, self.kinds) or isinstance(value, str | bytes):
            raise path.refuse(value, self)
        return [self.item.to_json(path.at(index), one) for index, one in enumerate(value)]

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, list):
            raise path.refuse(value, self)
        items = [self.item.from_json(path.at(index), one) for index, one in enumerate(value)]
        try:
            return self.make(items)
        except TypeError:
            wrong = next((index for index, one in enumerate(items) if not _is_hashable(one)), None)
            if wrong is None:
                raise
            raise path.at(wrong).refuse(value[wrong], lambda: f"hashable, to be in {self.expected}") from None


@dataclass(frozen=True)
class Places:
    """A tuple with a kind for each path."""

    reads: ClassVar[tuple[type[Any], ...]] = (list,)

    items: tuple[Converter, ...]

    @property
    def expected(self) -> str:
        return f"a tuple of {len(self.items)}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, tuple) or len(value) != len(self.items):
            raise path.refuse(value, self)
        return [
            item.to_json(path.at(index), one)
            for index, (item, one) in enumerate(zip(self.items, value, strict=True))
        ]

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(self.items):
            raise path.refuse(value, self)
        return tuple(
            item.from_json(path.at(index), one)
            for index, (item, one) in enumerate(zip(self.items, value, strict=True))
        )


@dataclass(frozen=True)
class Entries:
    """A dict; JSON's keys are strings, so its keys must be written as strings."""

    reads: ClassVar[tuple[type[Any], ...]] = (dict,)

    key: Converter
    value: Converter
    expected: str = "a dict"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise path.refuse(value, self)
        found = {}
        for key, one in value.items():
            text = self.key.to_json(path.key(key), key)
            if not isinstance(text, str):
                raise path.key(key).refuse(key, "written as a string in JSON")
            found[text] = self.value.to_json(path.at(text), one)
        return found

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, dict):
            raise path.refuse(value, self)
        found = {}
        for key, one in value.items():
            made = self.key.from_json(path.key(key), key)
            if not _is_hashable(made):
                raise path.key(key).refuse(key, "hashable, to be the key of a dict")
            found[made] = self.value.from_json(path.at(key), one)
        return found


@dataclass(frozen=True)
class Either:
    """A union: the first member that fits. What would come back as another member is refused."""

    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    members: tuple[Converter, ...]

    @property
    def expected(self) -> str:
        return " or ".join(member.expected for member in self.members)

    def to_json(self, path: ValuePath, value: Any) -> Any:
        path = path.in_union()
        return path.convert_once(self, self._write, value)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        fitting = self._fitting(value)
        if len(fitting) == 1:
            return fitting[0].from_json(path, value)
        if isinstance(value, ATOMS):
            # Nothing is in it that could be converted twice.
            return self._read(path, value)[1]
        path = path.in_union()
        return path.convert_once(self, self._read, value)[1]

    def _write(self, path: ValuePath, value: Any) -> Any:
        for member in self.members:
            try:
                written = member.to_json(path, value)
            except InvalidValue:
                continue
            reader, _ = path.convert_once(self, self._read, written)
            if reader is not member:
                raise path.refuse(value, _mistaken(reader))
            return written
        raise path.refuse(value, self)

    def _fitting(self, value: Any) -> list[Converter]:
        """Return the members that may be able to read this, by its shape."""
        return [member for member in self.members if isinstance(value, member.reads)]

    def _read(self, path: ValuePath, value: Any) -> tuple[Converter, Any]:
        for member in self._fitting(value):
            try:
                return member, member.from_json(path, value)
            except InvalidValue:
                continue
        raise path.refuse(value, self)


def _mistaken(reader: Converter) -> Callable[[], str]:
    return lambda: f"distinct in JSON: this would come back as {reader.expected}"


NOTHING = Plain("None", (type(None),))
SIMPLE: Mapping[Any, Converter] = {
    None: NOTHING,
    type(None): NOTHING,
    bool: Plain("a bool", (bool,)),
    int: Plain("an int", (int,)),
    float: Plain("a finite float", (int, float)),
    str: Plain("a str", (str,)),
    bytes: Coded(
        "bytes",
        bytes,
        lambda value: base64.b64encode(value).decode(),
        lambda text: base64.b64decode(text, validate=True),
        most=sys.maxsize,
    ),
    datetime: Coded("a datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    date: Coded("a date", date, date.isoformat, date.fromisoformat),
    time: Coded("a time", time, time.isoformat, time.fromisoformat),
    timedelta: Coded(
        "a timedelta",
        timedelta,
        timedelta.total_seconds,
        lambda seconds: timedelta(seconds=seconds),
        is_text=False,
    ),
    UUID: Coded("a UUID", UUID, str, UUID),
    Decimal: Coded("a Decimal", Decimal, str, Decimal, most=sys.maxsize),
}
SEQUENCES: Mapping[Any, tuple[str, tuple[type[Any], ...], Callable[[list[Any]], Any]]] = {
    list: ("a list", (list,), list),
    set: ("a set", (set,), set),
    frozenset: ("a frozenset", (frozenset,), frozenset),
    tuple: ("a tuple", (tuple,), tuple),
    Sequence: ("a sequence", (Sequence,), list),
}
