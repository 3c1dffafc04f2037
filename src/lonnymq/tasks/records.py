"""Values with named fields: dataclasses, typed dicts and pydantic models."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lonnymq.tasks.place import Place
from lonnymq.tasks.values import Converter
from lonnymq.texts import cut, listed

MOST_ERRORS = 20


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

    def to_json(self, place: Place, value: Any) -> Any:
        return place.once(self, self._write, value)

    def from_json(self, place: Place, value: Any) -> Any:
        return place.once(self, self._read, value)

    def _write(self, place: Place, value: Any) -> Any:
        # A subclass would come back as this one.
        if not (isinstance(value, dict) if self.is_dict else type(value) is self.kind):
            raise place.refuse(value, self.expected)
        values = (
            self._known(place, value)
            if self.is_dict
            else {name: getattr(value, name) for name in self.fields}
        )
        return {name: self.fields[name].to_json(place.at(name), one) for name, one in values.items()}

    def _read(self, place: Place, value: Any) -> Any:
        if not isinstance(value, dict):
            raise place.refuse(value, self.expected)
        values = {
            name: self.fields[name].from_json(place.at(name), one)
            for name, one in self._known(place, value).items()
        }
        try:
            return values if self.is_dict else self.kind(**values)
        except (TypeError, ValueError) as error:
            raise place.refuse(value, f"{self.expected} ({cut(str(error), 300)})") from error

    def _known(self, place: Place, value: dict[str, Any]) -> dict[str, Any]:
        if missing := self.required - value.keys():
            raise place.refuse(value, f"{self.expected}, with {listed(sorted(missing))}")
        if unknown := value.keys() - self.fields.keys():
            raise place.refuse(value, f"{self.expected}, without {listed(unknown)}")
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

    def to_json(self, place: Place, value: Any) -> Any:
        if type(value) is not self.kind:
            raise place.refuse(value, self.expected)
        written = value.model_dump(mode="json", by_alias=True, round_trip=True)
        # A secret is written as asterisks, and a serializer may be of the user's own.
        if self.from_json(place, written).model_dump() != value.model_dump():
            raise place.refuse(value, f"{self.expected} that comes back from JSON as it was")
        return written

    def from_json(self, place: Place, value: Any) -> Any:
        try:
            # As JSON text: models that are strict with Python's values take dates and the like only so.
            return self.kind.model_validate_json(json.dumps(value))
        except ValueError as error:
            raise place.refuse(value, f"{self.expected} ({_reason(error)})") from error


def _reason(error: Any) -> str:
    """Return what pydantic says; a text about a million errors would take it seconds."""
    count = error.error_count() if hasattr(error, "error_count") else 1
    return cut(str(error), 300) if count <= MOST_ERRORS else f"{count} errors"
