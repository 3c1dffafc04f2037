"""Chooses the converter for an annotation."""

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lonnymq.errors import InvalidArgument
from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.converters.containers import SEQUENCES, DictConverter, SequenceConverter, TupleConverter
from lonnymq.tasks.converters.pydantic_models import PydanticConverter
from lonnymq.tasks.converters.records import RecordConverter
from lonnymq.tasks.converters.scalars import SCALAR_CONVERTERS, EnumConverter, LiteralConverter
from lonnymq.tasks.converters.union import UnionConverter
from lonnymq.tasks.converters.untyped import UNTYPED

Records = dict[Any, RecordConverter]


def converter_for(annotation: Any, records: Records | None = None) -> Converter:
    """Return the converter for an annotation.

    `records` has the converters that exist or are being built, for records that refer to themselves.
    """
    records = {} if records is None else records
    annotation = _resolve_alias(annotation)
    if annotation is Any or annotation is object:
        return UNTYPED
    # Other annotations may not be hashable, because anything may be in their brackets.
    if annotation is None or (isinstance(annotation, type) and annotation in SCALAR_CONVERTERS):
        return SCALAR_CONVERTERS[annotation]
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Literal:
        return LiteralConverter(arguments)
    if origin in (Union, UnionType):
        return UnionConverter(tuple(converter_for(one, records) for one in arguments))
    if origin is tuple and arguments and arguments[-1:] != (...,):
        return TupleConverter(tuple(converter_for(one, records) for one in arguments))
    if isinstance(origin, type) and origin in SEQUENCES:
        expected, types, create = SEQUENCES[origin]
        item = converter_for(arguments[0], records) if arguments else UNTYPED
        return SequenceConverter(expected, item, types, create)
    if origin in (dict, Mapping):
        key, value = arguments or (str, Any)
        return DictConverter(converter_for(key, records), converter_for(value, records))
    if isinstance(origin, type):
        found = _converter_for_class(origin, records)
        if found is not None:
            return found
    raise InvalidArgument(
        f"{_format_annotation(annotation)} cannot be the type of a task's argument: use JSON types,"
        " datetimes, UUID, Decimal, bytes, enums, dataclasses, TypedDicts or pydantic models, or lists, sets,"
        " tuples, dicts and unions of these"
    )


def _converter_for_class(python_type: Any, records: Records) -> Converter | None:
    if issubclass(python_type, Enum) and all(isinstance(one.value, str | int | float) for one in python_type):
        return EnumConverter(python_type)
    if _is_pydantic(python_type):
        return PydanticConverter(python_type)
    if python_type in records:
        return records[python_type]
    if _is_typed_dict(python_type):
        record = records[python_type] = RecordConverter(python_type, is_dict=True)
        hints = get_type_hints(python_type, include_extras=True)
        record.required = frozenset(
            name for name, hint in hints.items() if _is_required_key(python_type, name, hint)
        )
        names = list(hints)
    elif dataclasses.is_dataclass(python_type):
        fields = [one for one in dataclasses.fields(python_type) if one.init]
        record = records[python_type] = RecordConverter(
            cast("type[Any]", python_type),
            is_dict=False,
            required=frozenset(one.name for one in fields if _is_required(one)),
        )
        names = [one.name for one in fields]
        _require_constructible(python_type, names)
        all_fields = tuple(one.name for one in dataclasses.fields(python_type) if one.compare)
        # Its fields may be computed, so an instance may be read back with other values.
        if hasattr(python_type, "__post_init__") or not set(all_fields) <= set(names):
            record.compared = all_fields
    else:
        return None
    hints = get_type_hints(python_type)
    record.fields = {name: converter_for(hints[name], records) for name in names}
    return record


def _is_typed_dict(python_type: Any) -> bool:
    # That of typing_extensions, which pydantic requires before Python 3.12, is another class.
    return is_typeddict(python_type) or (
        issubclass(python_type, dict) and hasattr(python_type, "__required_keys__")
    )


def _is_required_key(python_type: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict needs a key; if its annotations were texts, it does not know that itself."""
    while (origin := get_origin(hint)) is not None:
        if origin in (Required, NotRequired):
            return origin is Required
        if origin is not Annotated and getattr(origin, "_name", "") != "ReadOnly":
            break
        hint = get_args(hint)[0]
    return name in python_type.__required_keys__


def _require_constructible(python_type: Any, names: list[str]) -> None:
    """Refuse a dataclass that cannot be created from its fields, for example because of an InitVar."""
    for name, parameter in inspect.signature(python_type).parameters.items():
        if parameter.default is parameter.empty and name not in names:
            raise InvalidArgument(
                f"{python_type.__qualname__} cannot be the type of a task's argument: its constructor needs"
                f" {name!r}, which is not a field"
            )


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_pydantic(python_type: type) -> bool:
    # A program that annotates with a model has imported pydantic.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(python_type, pydantic.BaseModel)


def _resolve_alias(annotation: Any) -> Any:
    """Return what a type alias, a NewType, a TypeVar, an Annotated or a ReadOnly stands for."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = annotation.__origin__
        elif getattr(get_origin(annotation), "_name", "") == "ReadOnly":
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif isinstance(annotation, TypeVar):
            annotation = annotation.__bound__ or Any
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def _format_annotation(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
