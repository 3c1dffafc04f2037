"""Converters of lists, sets, tuples and dicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.value_path import ValuePath


@dataclass(frozen=True)
class SequenceConverter:
    """A list, a set or a tuple of any length."""

    reads: ClassVar[tuple[type[Any], ...]] = (list,)

    expected: str
    item: Converter
    python_types: tuple[type[Any], ...]
    create: Callable[[list[Any]], Any]

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, self.python_types) or isinstance(value, str | bytes):
            raise path.invalid(value, self)
        return [self.item.to_json(path.at(index), one) for index, one in enumerate(value)]

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, list):
            raise path.invalid(value, self)
        items = [self.item.from_json(path.at(index), one) for index, one in enumerate(value)]
        try:
            return self.create(items)
        except TypeError:
            wrong = next((index for index, one in enumerate(items) if not _is_hashable(one)), None)
            if wrong is None:
                raise
            raise path.at(wrong).invalid(
                value[wrong], lambda: f"hashable, to be in {self.expected}"
            ) from None


@dataclass(frozen=True)
class TupleConverter:
    """A tuple of a fixed length, with a converter for each item."""

    reads: ClassVar[tuple[type[Any], ...]] = (list,)

    items: tuple[Converter, ...]

    @property
    def expected(self) -> str:
        return f"a tuple of {len(self.items)}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, tuple) or len(value) != len(self.items):
            raise path.invalid(value, self)
        return [
            item.to_json(path.at(index), one)
            for index, (item, one) in enumerate(zip(self.items, value, strict=True))
        ]

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(self.items):
            raise path.invalid(value, self)
        return tuple(
            item.from_json(path.at(index), one)
            for index, (item, one) in enumerate(zip(self.items, value, strict=True))
        )


@dataclass(frozen=True)
class DictConverter:
    """A dict whose keys are written as strings, because keys of JSON objects are strings."""

    reads: ClassVar[tuple[type[Any], ...]] = (dict,)

    key: Converter
    value: Converter
    expected: str = "a dict"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise path.invalid(value, self)
        written = {}
        for key, one in value.items():
            text = self.key.to_json(path.key(key), key)
            if not isinstance(text, str):
                raise path.key(key).invalid(key, "a string when it is written as JSON")
            written[text] = self.value.to_json(path.at(text), one)
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, dict):
            raise path.invalid(value, self)
        read = {}
        for text, one in value.items():
            key = self.key.from_json(path.key(text), text)
            if not _is_hashable(key):
                raise path.key(text).invalid(text, "hashable, to be the key of a dict")
            read[key] = self.value.from_json(path.at(text), one)
        return read


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# By the annotation's origin: what is expected, the accepted types, and the function that creates one.
SEQUENCES: Mapping[Any, tuple[str, tuple[type[Any], ...], Callable[[list[Any]], Any]]] = {
    list: ("a list", (list,), list),
    set: ("a set", (set,), set),
    frozenset: ("a frozenset", (frozenset,), frozenset),
    tuple: ("a tuple", (tuple,), tuple),
    Sequence: ("a sequence", (Sequence,), list),
}
