"""The converter of parameters without an annotation."""

from dataclasses import dataclass
from typing import Any, ClassVar

from lonnymq.tasks.value_path import ValuePath


@dataclass(frozen=True)
class UntypedConverter:
    """Accepts only values that JSON returns unchanged."""

    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    expected: str = "a value that JSON returns unchanged (annotate the parameter to pass other types)"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if type(value) is list:
            return [self.to_json(path.at(index), item) for index, item in enumerate(value)]
        if type(value) is dict:
            return {self._key(path, key): self.to_json(path.at(key), one) for key, one in value.items()}
        if value is None or (type(value) in (str, bool, int, float) and value == value):
            return value
        raise path.invalid(value, self)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        return value

    def _key(self, path: ValuePath, key: Any) -> str:
        if type(key) is not str:
            raise path.invalid(key, "a dict whose keys are strings")
        return key


UNTYPED = UntypedConverter()
