"""The converter of pydantic models, which does not import pydantic."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from lonnymq.tasks.converters.base import explain
from lonnymq.tasks.value_path import ValuePath
from lonnymq.texts import list_names

# A model that overrides one of these may read itself from other names.
READING_METHODS = ("__init__", "model_validate_json", "__get_pydantic_core_schema__")


@dataclass(frozen=True)
class PydanticConverter:
    """Lets the model write and read itself."""

    model: Any
    # A root model may be of any type.
    reads: ClassVar[tuple[type[Any], ...]] = (object,)

    @property
    def expected(self) -> str:
        return f"an instance of {self.model.__name__}"

    def to_json(self, path: ValuePath, value: Any) -> Any:
        if type(value) is not self.model:
            raise path.invalid(value, self)
        written = value.model_dump(mode="json", by_alias=True, round_trip=True)
        # A secret is written as asterisks, and a custom serializer may lose data.
        if self.from_json(path, written).model_dump() != value.model_dump():
            raise path.invalid(value, lambda: f"{self.expected} that JSON returns unchanged")
        return written

    def from_json(self, path: ValuePath, value: Any) -> Any:
        if missing := self._missing(value):
            raise path.invalid(value, lambda: f"{self.expected}, which needs {list_names(missing)}")
        try:
            # As JSON text: strict models accept dates and the like from JSON but not as Python strings.
            return self.model.model_validate_json(json.dumps(value))
        # TypeError, because a custom codec may return what JSON cannot represent.
        except (ValueError, TypeError) as error:
            raise path.invalid(value, explain(self, error)) from error

    def _missing(self, value: Any) -> list[str]:
        """Return the required fields that are missing.

        In nested records, the model may be tried on each of them with everything inside it. Comparing names
        first avoids writing all of that as JSON.
        """
        if not isinstance(value, dict):
            return []
        return [names[0] for names in self._required_names if value.keys().isdisjoint(names)]

    @cached_property
    def _required_names(self) -> list[list[str]]:
        """Return the possible names of each required field; none if the model may read it in other ways."""
        model = self.model
        validators = model.__pydantic_decorators__.model_validators.values()
        reads_names = (
            not model.__pydantic_root_model__
            and all(one.info.mode == "after" for one in validators)
            and all(_is_inherited(model, name) for name in READING_METHODS)
        )
        if not reads_names:
            return []
        return [
            [alias, name] if (alias := field.validation_alias) is not None else [name]
            for name, field in model.model_fields.items()
            if field.is_required() and isinstance(field.validation_alias, str | None)
        ]


def _is_inherited(model: Any, method: str) -> bool:
    """Whether the method is pydantic's own."""
    owner = next(one for one in model.__mro__ if method in vars(one))
    return str(owner.__module__).partition(".")[0] == "pydantic"
