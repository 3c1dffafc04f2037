"""The arguments of a task: checked against its signature, written as JSON, read back in the worker."""

import difflib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from lonnymq.errors import InvalidArgument
from lonnymq.tasks.annotations import converter
from lonnymq.tasks.records import Record
from lonnymq.tasks.value_path import InvalidValue, ValuePath
from lonnymq.tasks.values import SIMPLE, Converter, Entries, Items
from lonnymq.texts import cut, line, listed

Parameter = inspect.Parameter
# The longest name that may be a misspelt one.
MAX_MISSPELT = 100
ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Arguments:
    """What a function takes. Annotations that name something not defined yet are looked at on first use."""

    def __init__(self, function: Callable[..., object], task: str) -> None:
        self._function = function
        self._task = task
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters
        self._needed = [
            name
            for name, parameter in parameters.items()
            if parameter.default is Parameter.empty and parameter.kind not in ANY_NUMBER
        ]
        self._takes_any_name = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        # Nobody needs what a task returns.
        plain = self._signature.replace(return_annotation=inspect.Signature.empty)
        self._call = line(f"{task}{plain}")
        with suppress(NameError):
            _ = self._converters

    def to_json(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments by name; raise for what the function would not take."""
        if unknown := [name for name in options if not self.takes(name)]:
            raise self._unknown(unknown)
        try:
            bound = self._signature.bind(*arguments, **options).arguments
        except TypeError as error:
            raise InvalidArgument(f"{self._call}: {cut(str(error), 300)}") from None
        converters = self._resolved()
        with self._explained():
            return {name: converters[name].to_json(self._path(name), value) for name, value in bound.items()}

    def takes(self, name: str) -> bool:
        """Whether an argument may be given by this name."""
        return name in self._signature.parameters or self._takes_any_name

    def from_json(self, written: Any) -> inspect.BoundArguments:
        """Return the call that was meant, defaults included."""
        if not isinstance(written, dict):
            raise self._path("arguments").refuse(written, "an object with a member per argument").to_error()
        if unknown := [name for name in written if name not in self._signature.parameters]:
            raise self._unknown(unknown)
        if missing := [name for name in self._needed if name not in written]:
            raise InvalidArgument(f"{self._call}: missing {_named(missing)}")
        converters = self._resolved()
        bound = self._signature.bind_partial()
        with self._explained():
            for name, value in written.items():
                bound.arguments[name] = converters[name].from_json(self._path(name), value)
        bound.apply_defaults()
        return bound

    def _path(self, name: str) -> ValuePath:
        return ValuePath(f"{self._task}: {name}")

    def _unknown(self, names: list[Any]) -> InvalidArgument:
        """Return the error for names that the function does not have, with the one that may be meant."""
        text = f"{self._call}: unknown {_named(names)}"
        # Comparing long texts takes long.
        meant = names[0] if isinstance(names[0], str) and len(names[0]) <= MAX_MISSPELT else ""
        close = difflib.get_close_matches(meant, self._signature.parameters, n=1)
        return InvalidArgument(f"{text}; did you mean {close[0]!r}?" if close else text)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say how the task is called, and why values that are nested too deep are refused."""
        try:
            yield
        except InvalidValue as refused:
            raise InvalidArgument(f"{refused.to_error()}; call it as {self._call}") from None
        except RecursionError:
            raise InvalidArgument(
                f"{self._task}: its arguments are nested too deep, or in themselves"
            ) from None

    def _resolved(self) -> dict[str, Converter]:
        try:
            return self._converters
        except NameError as error:
            raise InvalidArgument(
                f"{self._call} has an annotation that cannot be looked up now: {error}"
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
                raise InvalidArgument(f"{self._path(name)}: {error}") from None
            except RecursionError:
                raise InvalidArgument(
                    f"{self._path(name)}: only dataclasses and typed dicts may refer to themselves"
                ) from None
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


def _named(names: list[Any]) -> str:
    return f"argument{'s' if len(names) > 1 else ''} {listed(names)}"
