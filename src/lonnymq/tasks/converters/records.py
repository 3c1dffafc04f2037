"""The converter of dataclasses and typed dicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lonnymq.tasks.converters.base import Converter, explain
from lonnymq.tasks.value_path import ValuePath
from lonnymq.texts import list_names, short_repr


@dataclass(eq=False)
class RecordConverter:
    """A dataclass or a TypedDict. Its fields are set later, because they may refer to the record itself."""

    python_type: type[Any]
    is_dict: bool
    required: frozenset[str] = frozenset()
    fields: Mapping[str, Converter] = field(default_factory=dict)
    # The attributes that its constructor may compute.
    compared: tuple[str, ...] = ()
    reads: ClassVar[tuple[type[Any], ...]] = (dict,)

    @property
    def expected(self) -> str:
        return f"an instance of {self.python_type.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        return path.convert_once(self, self._write, value)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        return path.convert_once(self, self._read, value)

    def _write(self, path: ValuePath, value: Any) -> Any:
        # An instance of a subclass would be read back as an instance of this class.
        if not (isinstance(value, dict) if self.is_dict else type(value) is self.python_type):
            raise path.invalid(value, self)
        values = (
            self._require_names(path, value)
            if self.is_dict
            else {name: getattr(value, name) for name in self.fields}
        )
        written = {name: self.fields[name].to_json(path.at(name), one) for name, one in values.items()}
        if self.compared:
            self._require_same(path, value, self.from_json(path, written))
        return written

    def _require_same(self, path: ValuePath, value: Any, read: Any) -> None:
        for name in self.compared:
            one, other = getattr(value, name, None), getattr(read, name, None)
            if not _is_equal(one, other):
                expected = (
                    f"what the constructor of {self.python_type.__name__} makes of it, {short_repr(other)}"
                )
                raise path.at(name).invalid(one, expected)

    def _read(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, dict):
            raise path.invalid(value, self)
        values = {
            name: self.fields[name].from_json(path.at(name), one)
            for name, one in self._require_names(path, value).items()
        }
        try:
            return values if self.is_dict else self.python_type(**values)
        except (TypeError, ValueError) as error:
            raise path.invalid(value, explain(self, error)) from error

    def _require_names(self, path: ValuePath, value: dict[str, Any]) -> dict[str, Any]:
        if missing := self.required - value.keys():
            raise path.invalid(value, lambda: f"{self.expected}, which needs {list_names(sorted(missing))}")
        if unknown := value.keys() - self.fields.keys():
            raise path.invalid(value, lambda: f"{self.expected}, which has no {list_names(unknown)}")
        return value


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same, as far as their class can tell."""
    has_equality = any("__eq__" in vars(kind) for kind in type(one).__mro__[:-1])
    return type(other) is type(one) and (not has_equality or bool(one == other))
