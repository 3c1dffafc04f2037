"""Middleware around enqueueing. Its functions are generators, so both clients can run them."""

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from lonnymq.calls import argument
from lonnymq.errors import LonnyError, invalid
from lonnymq.model import Created, NewMessage, Published, TenantCreated

Enqueued = Sequence[Created | TenantCreated] | Published
# Takes the messages, yields those to enqueue in their place, and is sent the result. An error is raised at
# the yield.
Enclosing = Generator[Iterable[NewMessage], Enqueued, None]
EnqueueMiddleware = Callable[[Iterable[NewMessage]], Enclosing]


def require_middleware(middleware: Sequence[EnqueueMiddleware]) -> tuple[EnqueueMiddleware, ...]:
    """Return the middleware as a tuple; raise if one of them is certainly not a generator function."""
    found = tuple(argument.items("middleware", middleware, "a sequence of generator functions"))
    one: Any
    for one in found:
        if not callable(one) or inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise invalid("middleware", one, "a sequence of generator functions, which yield the messages")
    return found


class Enqueueing:
    """A context manager around one call that enqueues; `messages` are what it has to enqueue.

    The first middleware is the outermost. `result` is to be set before the block ends.
    """

    __slots__ = ("_middleware", "_started", "messages", "result")

    def __init__(self, middleware: Sequence[EnqueueMiddleware], messages: Iterable[NewMessage]) -> None:
        self._middleware = middleware
        self._started: list[tuple[str, Enclosing]] = []
        self.messages = messages
        self.result: Enqueued = ()

    def __enter__(self) -> Self:
        if not self._middleware:
            return self
        try:
            for middleware in self._middleware:
                name = getattr(middleware, "__qualname__", type(middleware).__qualname__)
                enclosing = middleware(self.messages)
                self.messages = _start(enclosing, name)
                self._started.append((name, enclosing))
        except BaseException as error:
            self._finish(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started:
            self._finish(error)

    def same_number(self, count: int) -> Sequence[NewMessage]:
        """Return the messages; raise unless there is one for each that the caller has given."""
        messages = self.messages if isinstance(self.messages, tuple | list) else list(self.messages)
        if len(messages) != count:
            raise LonnyError(f"enqueue middleware yielded {len(messages)} messages for {count}")
        return messages

    def _finish(self, error: BaseException | None) -> None:
        """Resume each middleware, the innermost first; it may replace the error, but not suppress it."""
        first = error
        while self._started:
            name, enclosing = self._started.pop()
            try:
                if error is None:
                    enclosing.send(self.result)
                else:
                    enclosing.throw(error)
                raise LonnyError(f"{name} yielded twice: enqueue middleware yields once")
            except StopIteration:
                pass
            except BaseException as raised:  # noqa: BLE001 - raised again below
                error = raised
        if error is not None and error is not first:
            raise error


def _start(enclosing: Enclosing, name: str) -> Iterable[NewMessage]:
    if not isinstance(enclosing, Generator):
        raise LonnyError(f"{name} is not a generator function: enqueue middleware yields the messages")
    try:
        return next(enclosing)
    except StopIteration:
        raise LonnyError(f"{name} yielded nothing: enqueue middleware yields the messages") from None
