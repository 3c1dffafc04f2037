"""From an annotation to how its values are written and read."""

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
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lonnymq.errors import InvalidArgument
from lonnymq.tasks.records import Model, Record
from lonnymq.tasks.values import (
    SEQUENCES,
    SIMPLE,
    Anything,
    Choice,
    Converter,
    Either,
    Entries,
    Items,
    Member,
    Places,
)

ANYTHING = Anything()


def converter(annotation: Any, known: dict[Any, Record] | None = None) -> Converter:
    """Return how values of this annotation become JSON; `known` are records that refer to themselves."""
    known = {} if known is None else known
    annotation = _bare(annotation)
    if annotation is Any or annotation is object:
        return ANYTHING
    # Others may not be hashable: what is in brackets can be anything.
    if annotation is None or (isinstance(annotation, type) and annotation in SIMPLE):
        return SIMPLE[annotation]
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Literal:
        return Choice(arguments)
    if origin in (Union, UnionType):
        return Either(tuple(converter(one, known) for one in arguments))
    if origin is tuple and arguments and arguments[-1:] != (...,):
        return Places(tuple(converter(one, known) for one in arguments))
    if isinstance(origin, type) and origin in SEQUENCES:
        expected, kinds, make = SEQUENCES[origin]
        return Items(expected, converter(arguments[0], known) if arguments else ANYTHING, kinds, make)
    if origin in (dict, Mapping):
        key, value = arguments or (str, Any)
        return Entries(converter(key, known), converter(value, known))
    if isinstance(origin, type):
        found = _class(origin, known)
        if found is not None:
            return found
    raise InvalidArgument(
        f"{_shown(annotation)} cannot be an argument of a task: use what JSON knows, datetimes, UUIDs,"
        " Decimals, bytes, enums, dataclasses, typed dicts, pydantic models; lists, sets, tuples, dicts and"
        " unions of these"
    )


def _class(kind: Any, known: dict[Any, Record]) -> Converter | None:
    if issubclass(kind, Enum) and all(isinstance(one.value, str | int | float) for one in kind):
        return Member(kind)
    if _is_pydantic(kind):
        return Model(kind)
    if kind in known:
        return known[kind]
    if is_typeddict(kind):
        record = known[kind] = Record(kind, is_dict=True, required=kind.__required_keys__)
        names = list(kind.__annotations__)
    elif dataclasses.is_dataclass(kind):
        fields = [one for one in dataclasses.fields(kind) if one.init]
        record = known[kind] = Record(
            cast("type[Any]", kind), is_dict=False, required=frozenset(map(_required_name, fields)) - {""}
        )
        names = [one.name for one in fields]
        _require_made_of(kind, names)
    else:
        return None
    hints = get_type_hints(kind)
    record.fields = {name: converter(hints[name], known) for name in names}
    return record


def _require_made_of(kind: Any, names: list[str]) -> None:
    """Refuse a dataclass that its fields are not enough for, as with an InitVar."""
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and name not in names:
            raise InvalidArgument(
                f"{kind.__qualname__} cannot be an argument of a task: it is made with {name!r}, which is no"
                " field of it"
            )


def _required_name(field: "dataclasses.Field[Any]") -> str:
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    return "" if has_default else field.name


def _is_pydantic(kind: type) -> bool:
    # Whoever annotates with a model has imported pydantic.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def _bare(annotation: Any) -> Any:
    """Return what an alias, a NewType, a TypeVar or an Annotated stands for."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = annotation.__origin__
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif isinstance(annotation, TypeVar):
            annotation = annotation.__bound__ or Any
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def _shown(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
