"""Converters of values without parts, such as numbers, datetimes and enums."""

import base64
import binascii
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, ClassVar
from uuid import UUID

from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.value_path import ValuePath
from lonnymq.texts import short_repr

# The most characters of an Enum's value.
MAX_ENUM_VALUE = 10_000
# JSON's types except arrays and objects.
JSON_SCALARS = (str, int, float, type(None))


@dataclass(frozen=True)
class JsonScalarConverter:
    """Values that are the same in JSON."""

    reads: ClassVar[tuple[type[Any], ...]] = JSON_SCALARS

    expected: str
    python_types: tuple[type[Any], ...]

    def to_json(self, path: ValuePath, value: Any) -> Any:
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if not isinstance(value, self.python_types) or not is_finite:
            raise path.invalid(value, self)
        return value

    from_json = to_json


@dataclass(frozen=True)
class EncodedConverter:
    """Values that are encoded as a string or a number."""

    reads: ClassVar[tuple[type[Any], ...]] = JSON_SCALARS

    expected: str
    python_type: type[Any]
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_text: bool = True
    # Python's own parsers put a text that they refuse into their errors, however long it is.
    max_length: int = 100

    def to_json(self, path: ValuePath, value: Any) -> Any:
        # A datetime is a date too, but would not be read back as one.
        if not isinstance(value, self.python_type) or (
            self.python_type is date and isinstance(value, datetime)
        ):
            raise path.invalid(value, self)
        written = self.encode(value)
        # A time has no offset in most zones, and a long duration has more digits than a float.
        if self.python_type in (time, timedelta) and not _is_kept(value, self.decode, written):
            raise path.invalid(value, lambda: f"{self.expected} that JSON returns unchanged")
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        has_right_type = isinstance(value, str) if self.is_text else isinstance(value, int | float)
        try:
            if has_right_type and (not self.is_text or len(value) <= self.max_length):
                return self.decode(value)
        except (ValueError, OverflowError, InvalidOperation, binascii.Error):
            pass
        raise path.invalid(value, self)


def _is_kept(value: Any, decode: Callable[[Any], Any], written: Any) -> bool:
    try:
        read = decode(written)
    except (ValueError, OverflowError):
        return False
    has_zone = getattr(value, "tzinfo", None) is not None
    return bool(read == value) and has_zone == (getattr(read, "tzinfo", None) is not None)


@dataclass(frozen=True)
class LiteralConverter:
    """The values of a Literal; members of an Enum among them are written as their values."""

    reads: ClassVar[tuple[type[Any], ...]] = JSON_SCALARS

    values: tuple[Any, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(map(repr, self.values))}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not any(_is_same(value, one) for one in self.values):
            raise path.invalid(value, self)
        written = value.value if isinstance(value, Enum) else value
        read_back = self.from_json(path, written)
        if not _is_same(read_back, value):
            raise path.invalid(
                value, lambda: f"unambiguous in JSON: this would be read back as {short_repr(read_back)}"
            )
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        for one in self.values:
            if _is_same(value, one.value if isinstance(one, Enum) else one):
                return one
        raise path.invalid(value, self)


def _is_same(one: Any, other: Any) -> bool:
    """Whether type and value are equal: 1, True and a member of an IntEnum have equal values only."""
    return type(one) is type(other) and bool(one == other)


@dataclass(frozen=True)
class EnumConverter:
    """Members of an Enum, written as their values."""

    reads: ClassVar[tuple[type[Any], ...]] = JSON_SCALARS

    python_type: type[Enum]

    @property
    def expected(self) -> str:
        return f"a member of {self.python_type.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, self.python_type):
            raise path.invalid(value, self)
        return value.value

    def from_json(self, path: ValuePath, value: Any) -> Any:
        # An Enum puts a value that it refuses into its error, however long it is.
        is_short = isinstance(value, JSON_SCALARS) and not (
            isinstance(value, str) and len(value) > MAX_ENUM_VALUE
        )
        try:
            if is_short:
                return self.python_type(value)
        # TypeError, because an Enum's own _missing_ may get a type that it does not expect.
        except (ValueError, TypeError):
            pass
        raise path.invalid(value, lambda: f"the value of {self.expected}")


NONE = JsonScalarConverter("None", (type(None),))
SCALAR_CONVERTERS: Mapping[Any, Converter] = {
    None: NONE,
    type(None): NONE,
    bool: JsonScalarConverter("a bool", (bool,)),
    int: JsonScalarConverter("an int", (int,)),
    float: JsonScalarConverter("a finite float", (int, float)),
    str: JsonScalarConverter("a str", (str,)),
    bytes: EncodedConverter(
        "bytes",
        bytes,
        lambda value: base64.b64encode(value).decode(),
        lambda text: base64.b64decode(text, validate=True),
        max_length=sys.maxsize,
    ),
    datetime: EncodedConverter("a datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    date: EncodedConverter("a date", date, date.isoformat, date.fromisoformat),
    time: EncodedConverter("a time", time, time.isoformat, time.fromisoformat),
    timedelta: EncodedConverter(
        "a timedelta",
        timedelta,
        timedelta.total_seconds,
        lambda seconds: timedelta(seconds=seconds),
        is_text=False,
    ),
    UUID: EncodedConverter("a UUID", UUID, str, UUID),
    Decimal: EncodedConverter("a Decimal", Decimal, str, Decimal, max_length=sys.maxsize),
}
