"""How messages of one kind are handled, and how a handler defers or buries its message."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from lonnymq.calls import argument
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.texts import truncate
from lonnymq.worker.retry import Retry

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage

    Route = Callable[[AsyncMessage], "Handler"]

EXPECTED = "a function that takes a message"
HOOK_EXPECTED = "a function that takes a message and an exception"
MAX_NAME = 255


class Defer(Exception):
    """Raised by a handler: end this attempt and try again after `delay`, with `state` for the next one."""

    def __init__(
        self, delay: timedelta | float | None = None, *, state: Any = None, error: str | None = None
    ) -> None:
        super().__init__(error or "deferred by its handler")
        self.delay_ms = argument.delay_ms("delay", delay)
        self.state = state
        self.error = error


class Bury(Exception):
    """Raised by a handler: never try again, keep the message as a dead letter with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = argument.error_text(reason)


@dataclass(frozen=True, kw_only=True)
class Handler:
    """A function with its timeout and retries: an `async def` runs on the loop, a plain one in a thread.

    It takes an AsyncMessage or, if it is a plain function, a Message; with `is_batch` a list of them.
    """

    call: Callable[..., object]
    # The time limit of one attempt: a timedelta or seconds.
    timeout: timedelta | float | None = None
    retry: Retry = field(default_factory=Retry)
    # None: the limit of the message or of its channel, which the queue counts in any case.
    max_attempts: int | None = None
    is_batch: bool = False
    # For the log; default: the function's name.
    name: str = ""
    # Called with the message and the exception after each attempt that failed or was lost.
    on_failure: Callable[[Any, BaseException], object] | None = None

    def __post_init__(self) -> None:
        require_handler_function("call", self.call)
        if self.timeout is not None and not argument.seconds("timeout", self.timeout):
            raise invalid("timeout", self.timeout, "more than 0, or None for no limit")
        if not isinstance(self.retry, Retry):
            raise invalid("retry", self.retry, "a lonnymq.Retry")
        argument.optional_whole("max_attempts", self.max_attempts, 1, argument.MAX_INTEGER)
        argument.text("name", self.name, 0, MAX_NAME)
        if self.on_failure is not None:
            require_hook("on_failure", self.on_failure)
        if not self.name:
            object.__setattr__(self, "name", truncate(_name_of(self.call), MAX_NAME))

    @cached_property
    def timeout_s(self) -> float | None:
        """The time limit in seconds."""
        return None if self.timeout is None else argument.seconds("timeout", self.timeout)

    @cached_property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        return is_async_function(self.call)


def is_async_function(call: Any) -> bool:
    """Whether calling it returns a coroutine, to be awaited on the event loop."""
    call = _unwrap(call)
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def require_handler_function(name: str, call: Any) -> None:
    """Refuse what a worker could call without an error, and complete messages that it did not process."""
    _require_function(name, call, EXPECTED)
    _require_arguments(name, call, (None,), "a function that takes one argument, the message")


def require_hook(name: str, call: Any) -> None:
    """Refuse what could not be called with a message and an exception."""
    _require_function(name, call, HOOK_EXPECTED)
    _require_arguments(name, call, (None, None), HOOK_EXPECTED)


def _require_function(name: str, call: Any, expected: str) -> None:
    function = _unwrap(call)
    # A task takes its own arguments, as its methods do. Its app is the handler.
    for one in (function, getattr(function, "__self__", None)):
        if isinstance(reason := getattr(one, "not_a_handler", None), str):
            raise InvalidArgument(f"{name} must be {expected}: {reason}")
    if not callable(call) or inspect.isclass(function):
        raise invalid(name, call, expected)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise invalid(name, call, "a function that does its work when it is called, not a generator")


def _require_arguments(name: str, call: Any, arguments: tuple[Any, ...], expected: str) -> None:
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):
        # Some functions that are written in C have none.
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise invalid(name, call, f"{expected}; this one takes {signature}") from None


def enter_lifespan(handler: Any) -> AbstractAsyncContextManager[None]:
    """Enter the lifespan of an App; a function or a Handler has none."""
    enter = getattr(handler, "enter_lifespan", None)
    return enter() if callable(enter) else nullcontext()


def _name_of(call: Callable[..., object]) -> str:
    call = _unwrap(call)
    return str(getattr(call, "__qualname__", type(call).__qualname__))


def _unwrap(call: Any) -> Any:
    while isinstance(call, partial):
        call = call.func
    return call
