"""Values with named fields: dataclasses, typed dicts and pydantic models."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from lonnymq.tasks.value_path import ValuePath
from lonnymq.tasks.values import Converter
from lonnymq.texts import cut, listed

MAX_ERRORS = 20
# With what a pydantic model may change how it is read.
READERS = ("__init__", "model_validate_json", "__get_pydantic_core_schema__")


@dataclass(eq=False)
class Record:
    """A dataclass or a typed dict; its fields are filled in when all that they mention is known."""

    kind: type[Any]
    is_dict: bool
    required: frozenset[str] = frozenset()
    fields: Mapping[str, Converter] = field(default_factory=dict)
    reads: ClassVar[tuple[type[Any], ...]] = (dict,)

    @property
    def expected(self) -> str:
        return f"an instance of {self.kind.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        return path.convert_once(self, self._write, value)

    def from_json(self, path: ValuePath, value: Any) -> Any:
        return path.convert_once(self, self._read, value)

    def _write(self, path: ValuePath, value: Any) -> Any:
        # A subclass would come back as this one.
        if not (isinstance(value, dict) if self.is_dict else type(value) is self.kind):
            raise path.refuse(value, self)
        values = (
            self._known(path, value) if self.is_dict else {name: getattr(value, name) for name in self.fields}
        )
        return {name: self.fields[name].to_json(path.at(name), one) for name, one in values.items()}

    def _read(self, path: ValuePath, value: Any) -> Any:
        if not isinstance(value, dict):
            raise path.refuse(value, self)
        values = {
            name: self.fields[name].from_json(path.at(name), one)
            for name, one in self._known(path, value).items()
        }
        try:
            return values if self.is_dict else self.kind(**values)
        except (TypeError, ValueError) as error:
            raise path.refuse(value, _because(self, error)) from error

    def _known(self, path: ValuePath, value: dict[str, Any]) -> dict[str, Any]:
        if missing := self.required - value.keys():
            raise path.refuse(value, lambda: f"{self.expected}, with {listed(sorted(missing))}")
        if unknown := value.keys() - self.fields.keys():
            raise path.refuse(value, lambda: f"{self.expected}, without {listed(unknown)}")
        return value


@dataclass(frozen=True)
class Model:
    """A pydantic model, which knows best how to write and read itself."""

    kind: Any
    # A model may have a root of any kind.
    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    @property
    def expected(self) -> str:
        return f"an instance of {self.kind.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if type(value) is not self.kind:
            raise path.refuse(value, self)
        written = value.model_dump(mode="json", by_alias=True, round_trip=True)
        # A secret is written as asterisks, and a serializer may be of the user's own.
        if self.from_json(path, written).model_dump() != value.model_dump():
            raise path.refuse(value, lambda: f"{self.expected} that comes back from JSON as it was")
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if absent := self._absent(value):
            raise path.refuse(value, lambda: f"{self.expected}, with {listed(absent)}")
        try:
            # As JSON text: models that are strict with Python's values take dates and the like only so.
            return self.kind.model_validate_json(json.dumps(value))
        # A codec of the user's own may give what JSON cannot hold.
        except (ValueError, TypeError) as error:
            raise path.refuse(value, _because(self, error)) from error

    def _absent(self, value: Any) -> list[str]:
        """Return the fields without which the model cannot be made of this.

        Where records are nested in each other, the model may be tried on each of them with all that it holds,
        so what its names already tell is not worth the way through JSON.
        """
        if not isinstance(value, dict):
            return []
        return [names[0] for names in self._needed if value.keys().isdisjoint(names)]

    @cached_property
    def _needed(self) -> list[list[str]]:
        """Return the names of each field that must be there; none if the model may look elsewhere for it."""
        kind = self.kind
        validators = kind.__pydantic_decorators__.model_validators.values()
        is_plain = (
            not kind.__pydantic_root_model__
            and all(one.info.mode == "after" for one in validators)
            and all(_is_inherited(kind, name) for name in READERS)
        )
        if not is_plain:
            return []
        return [
            [alias, name] if (alias := field.validation_alias) is not None else [name]
            for name, field in kind.model_fields.items()
            if field.is_required() and isinstance(field.validation_alias, str | None)
        ]


def _is_inherited(kind: Any, name: str) -> bool:
    """Whether a model reads itself in this respect as pydantic's own base does."""
    owner = next(one for one in kind.__mro__ if name in vars(one))
    return str(owner.__module__).partition(".")[0] == "pydantic"


def _because(converter: Converter, error: Exception) -> Callable[[], str]:
    return lambda: f"{converter.expected} ({_reason(error)})"


def _reason(error: Any) -> str:
    """Return what pydantic says; a text about a million errors would take it seconds."""
    count = error.error_count() if hasattr(error, "error_count") else 1
    return cut(str(error), 300) if count <= MAX_ERRORS else f"{count} errors"
