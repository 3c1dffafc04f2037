"""The arguments of a task: checked against its signature, written as JSON, read back in the worker."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from lonnymq.errors import InvalidArgument, invalid
from lonnymq.tasks.annotations import converter
from lonnymq.tasks.records import Record
from lonnymq.tasks.values import SIMPLE, Converter, Entries, Items

Parameter = inspect.Parameter
ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Arguments:
    """What a function takes. Annotations that name something not defined yet are looked at on first use."""

    def __init__(self, function: Callable[..., object], task: str) -> None:
        self._function = function
        self._task = task
        self._signature = inspect.signature(function)
        self._needed = {
            name
            for name, parameter in self._signature.parameters.items()
            if parameter.default is Parameter.empty and parameter.kind not in ANY_NUMBER
        }
        with suppress(NameError):
            _ = self._converters

    def to_json(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by name; raise for what the function would not take."""
        try:
            bound = self._signature.bind(*arguments, **options).arguments
        except TypeError as error:
            raise InvalidArgument(
                f"{self._task}{self._signature} must be given arguments that it takes: {error}"
            ) from None
        converters = self._resolved()
        with self._nesting():
            return {name: converters[name].to_json(self._place(name), value) for name, value in bound.items()}

    def takes(self, name: str) -> bool:
        """Whether an argument may be given by this name."""
        parameters = self._signature.parameters
        return name in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())

    def from_json(self, written: Any) -> inspect.BoundArguments:
        """Return the call that was meant, defaults included."""
        if not isinstance(written, dict):
            raise invalid(self._place("arguments"), written, "an object with a member per argument")
        if missing := self._needed - written.keys():
            raise InvalidArgument(f"{self._task}{self._signature} needs {_listed(missing)}")
        if unknown := written.keys() - self._signature.parameters.keys():
            raise InvalidArgument(f"{self._task}{self._signature} takes no {_listed(unknown)}")
        converters = self._resolved()
        bound = self._signature.bind_partial()
        with self._nesting():
            for name, value in written.items():
                bound.arguments[name] = converters[name].from_json(self._place(name), value)
        bound.apply_defaults()
        return bound

    def _place(self, name: str) -> str:
        return f"{self._task}: {name}"

    @contextmanager
    def _nesting(self) -> Iterator[None]:
        try:
            yield
        except RecursionError:
            raise InvalidArgument(
                f"{self._task}: its arguments are nested too deep, or in themselves"
            ) from None

    def _resolved(self) -> dict[str, Converter]:
        try:
            return self._converters
        except NameError as error:
            raise InvalidArgument(
                f"{self._task}{self._signature} has an annotation that cannot be looked up now: {error}"
                " (import it outside of `if TYPE_CHECKING`)"
            ) from error

    @cached_property
    def _converters(self) -> dict[str, Converter]:
        known: dict[Any, Record] = {}
        hints = _hints(self._function)
        found = {}
        for name, parameter in self._signature.parameters.items():
            try:
                found[name] = _for_parameter(parameter, hints.get(name, Any), known)
            except InvalidArgument as error:
                raise InvalidArgument(f"{self._place(name)}: {error}") from None
        return found


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of all parameters; nobody needs what a task returns, so that may be unknown."""
    plain = inspect.unwrap(function)
    annotations = {name: one for name, one in inspect.get_annotations(plain).items() if name != "return"}
    return get_type_hints(
        SimpleNamespace(__annotations__=annotations), globalns=getattr(plain, "__globals__", {})
    )


def _for_parameter(parameter: Parameter, hint: Any, known: dict[Any, Record]) -> Converter:
    one = converter(hint, known)
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return Items("a tuple", one, (tuple,), tuple)
    if parameter.kind is Parameter.VAR_KEYWORD:
        return Entries(SIMPLE[str], one)
    return one


def _listed(names: set[Any]) -> str:
    return ", ".join(sorted(map(str, names)))
