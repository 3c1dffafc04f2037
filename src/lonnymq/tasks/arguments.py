"""The arguments of a task: checked against its signature, written as JSON, and read back in the worker."""

import difflib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from lonnymq.errors import InvalidArgument
from lonnymq.tasks.annotations import Records, converter_for
from lonnymq.tasks.converters.base import Converter
from lonnymq.tasks.converters.containers import DictConverter, SequenceConverter
from lonnymq.tasks.converters.scalars import SCALAR_CONVERTERS
from lonnymq.tasks.introspection import annotations_of, signature_of
from lonnymq.tasks.value_path import InvalidValue, ValuePath
from lonnymq.texts import list_names, one_line, truncate

Parameter = inspect.Parameter
# Names that are longer are not compared with the parameters' names.
MAX_MISSPELLED = 100
VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Arguments:
    """The parameters of a function. Annotations with names that are not defined yet are resolved later."""

    def __init__(self, function: Callable[..., object], task: str) -> None:
        self._function = function
        self._task = task
        self._signature = signature_of(function)
        parameters = self._signature.parameters
        self._required = [
            name
            for name, parameter in parameters.items()
            if parameter.default is Parameter.empty and parameter.kind not in VARIADIC
        ]
        self._takes_any_name = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        # The value that a task returns is ignored here.
        signature = self._signature.replace(return_annotation=inspect.Signature.empty)
        self._call = one_line(f"{task}{signature}")
        with suppress(NameError):
            _ = self._converters

    def to_json(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by name; raise for arguments that the function does not take."""
        return self._to_json(self._bind(arguments, options))

    def to_json_after_first(
        self, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Return the name of the first argument, whose value is not known yet, and the others by name."""
        first = next(iter(self._signature.parameters.values()), None)
        if first is None or first.kind in (*VARIADIC, Parameter.KEYWORD_ONLY):
            raise InvalidArgument(
                f"{self._call}: its first argument would take the result of the step before, but it has none"
                " (a step that is annotated `-> None` passes nothing on)"
            )
        bound = self._bind((None, *arguments), options)
        del bound[first.name]
        return first.name, self._to_json(bound)

    def takes(self, name: str) -> bool:
        """Whether an argument may be passed by this name."""
        return name in self._signature.parameters or self._takes_any_name

    def from_json(self, written: Any) -> inspect.BoundArguments:
        """Return the arguments of the call, including defaults."""
        if not isinstance(written, dict):
            raise self._path("arguments").invalid(written, "an object with a member per argument").to_error()
        if unknown := [name for name in written if name not in self._signature.parameters]:
            raise self._unknown(unknown)
        if missing := [name for name in self._required if name not in written]:
            raise InvalidArgument(f"{self._call}: missing {_list_arguments(missing)}")
        converters = self._resolve_converters()
        bound = self._signature.bind_partial()
        with self._convert_errors():
            for name, value in written.items():
                bound.arguments[name] = converters[name].from_json(self._path(name), value)
        bound.apply_defaults()
        return bound

    def _bind(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        if unknown := [name for name in options if not self.takes(name)]:
            raise self._unknown(unknown)
        try:
            return self._signature.bind(*arguments, **options).arguments
        except TypeError as error:
            raise InvalidArgument(f"{self._call}: {truncate(str(error), 300)}") from None

    def _to_json(self, bound: dict[str, Any]) -> dict[str, Any]:
        converters = self._resolve_converters()
        with self._convert_errors():
            return {name: converters[name].to_json(self._path(name), value) for name, value in bound.items()}

    def _path(self, name: str) -> ValuePath:
        return ValuePath(f"{self._task}: {name}")

    def _unknown(self, names: list[Any]) -> InvalidArgument:
        """Return the error for unknown names, with a similar name if there is one."""
        text = f"{self._call}: unknown {_list_arguments(names)}"
        # Comparing long texts takes long.
        name = names[0] if isinstance(names[0], str) and len(names[0]) <= MAX_MISSPELLED else ""
        similar = difflib.get_close_matches(name, self._signature.parameters, n=1)
        return InvalidArgument(f"{text}; did you mean {similar[0]!r}?" if similar else text)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Raise InvalidArgument with the task's signature for values that cannot be converted."""
        try:
            yield
        except InvalidValue as invalid:
            raise InvalidArgument(f"{invalid.to_error()}; call it as {self._call}") from None
        except RecursionError:
            raise InvalidArgument(
                f"{self._task}: its arguments are nested too deeply, or contain themselves"
            ) from None

    def _resolve_converters(self) -> dict[str, Converter]:
        try:
            return self._converters
        except NameError as error:
            raise InvalidArgument(
                f"{self._call} has an annotation that cannot be resolved: {error}"
                " (import it outside of `if TYPE_CHECKING`)"
            ) from error

    @cached_property
    def _converters(self) -> dict[str, Converter]:
        records: Records = {}
        hints = _hints(self._function)
        converters = {}
        for name, parameter in self._signature.parameters.items():
            try:
                converters[name] = _converter_for_parameter(parameter, hints.get(name, Any), records)
            except InvalidArgument as error:
                raise InvalidArgument(f"{self._path(name)}: {error}") from None
            except RecursionError:
                raise InvalidArgument(
                    f"{self._path(name)}: only dataclasses and TypedDicts may refer to themselves"
                ) from None
        return converters


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of all parameters; that of the result is ignored and may be undefined."""
    unwrapped = inspect.unwrap(function)
    annotations = {name: one for name, one in annotations_of(function).items() if name != "return"}
    return get_type_hints(
        SimpleNamespace(__annotations__=annotations), globalns=getattr(unwrapped, "__globals__", {})
    )


def _converter_for_parameter(parameter: Parameter, hint: Any, records: Records) -> Converter:
    one = converter_for(hint, records)
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return SequenceConverter("a tuple", one, (tuple,), tuple)
    if parameter.kind is Parameter.VAR_KEYWORD:
        return DictConverter(SCALAR_CONVERTERS[str], one)
    return one


def _list_arguments(names: list[Any]) -> str:
    return f"argument{'s' if len(names) > 1 else ''} {list_names(names)}"
