"""What a task returns: written as JSON by its annotation, and read back by those that wait for it."""

import inspect
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from lonnymq.errors import InvalidArgument
from lonnymq.tasks.annotations import converter_for
from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.introspection import annotations_of
from lonnymq.tasks.value_path import InvalidValue, ValuePath


class ReturnValue:
    """Looked at only when a result is kept or read: most tasks return nothing."""

    def __init__(self, function: Callable[..., object], task: str) -> None:
        self._function = function
        self._path = ValuePath(f"{task}: the result")

    @property
    def is_none(self) -> bool:
        """Whether the function is annotated `-> None`."""
        annotations = annotations_of(self._function)
        return "return" in annotations and annotations["return"] in (None, "None", type(None))

    def to_json(self, value: Any) -> Any:
        return self._convert(lambda: self._converter.to_json(self._path, value))

    def from_json(self, written: Any) -> Any:
        return self._convert(lambda: self._converter.from_json(self._path, written))

    def _convert(self, convert: Callable[[], Any]) -> Any:
        try:
            return convert()
        except InvalidValue as invalid:
            raise invalid.to_error() from None
        except RecursionError:
            raise InvalidArgument(f"{self._path}: it is nested too deeply, or contains itself") from None

    @cached_property
    def _converter(self) -> Converter:
        function = inspect.unwrap(self._function)
        annotation = annotations_of(function).get("return", Any)
        known = getattr(function, "__globals__", {})
        try:
            hint = get_type_hints(SimpleNamespace(__annotations__={"return": annotation}), globalns=known)
            return converter_for(hint["return"])
        except NameError as error:
            raise InvalidArgument(f"{self._path}: its annotation cannot be resolved: {error}") from error
        except InvalidArgument as error:
            raise InvalidArgument(f"{self._path}: {error}") from None
