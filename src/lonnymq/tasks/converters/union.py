"""The converter of unions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.value_path import ATOMS, InvalidValue, ValuePath


@dataclass(frozen=True)
class UnionConverter:
    """Uses the first member that accepts the value, and refuses what another member would read back."""

    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    members: tuple[Converter, ...]

    @property
    def expected(self) -> str:
        return " or ".join(member.expected for member in self.members)

    def to_json(self, path: ValuePath, value: Any) -> Any:
        path = path.in_union()
        return path.convert_once(self, self._write, value)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        candidates = self._candidates(value)
        if len(candidates) == 1:
            return candidates[0].from_json(path, value)
        if isinstance(value, ATOMS):
            # It has no parts that could be converted twice.
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
                raise path.invalid(value, _describe_ambiguity(reader))
            return written
        raise path.invalid(value, self)

    def _candidates(self, value: Any) -> list[Converter]:
        """Return the members that may accept a JSON value of this type."""
        return [member for member in self.members if isinstance(value, member.reads)]

    def _read(self, path: ValuePath, value: Any) -> tuple[Converter, Any]:
        for member in self._candidates(value):
            try:
                return member, member.from_json(path, value)
            except InvalidValue:
                continue
        raise path.invalid(value, self)


def _describe_ambiguity(reader: Converter) -> Callable[[], str]:
    return lambda: f"unambiguous in JSON: this would be read back as {reader.expected}"
