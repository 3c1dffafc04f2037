"""What all converters have in common."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from lonnymq.tasks.value_path import ValuePath
from lonnymq.texts import truncate

MAX_PYDANTIC_ERRORS = 20


class Converter(Protocol):
    """Both directions raise InvalidValue, with the path, for a value that is not as `expected`."""

    # The types of JSON values that `from_json` may accept.
    reads: ClassVar[tuple[type[Any], ...]]

    @property
    def expected(self) -> str: ...
    def to_json(self, path: ValuePath, value: Any) -> Any: ...
    def from_json(self, path: ValuePath, value: Any) -> Any: ...


def explain(converter: Converter, error: Exception) -> Callable[[], str]:
    """Return what the converter expected and why a constructor refused the value, as a lazy text."""
    return lambda: f"{converter.expected} ({_reason(error)})"


def _reason(error: Any) -> str:
    # Formatting a pydantic error about a million values would take seconds.
    count = error.error_count() if hasattr(error, "error_count") else 1
    return truncate(str(error), 300) if count <= MAX_PYDANTIC_ERRORS else f"{count} errors"
