"""Runs a handler inside its middleware, on the event loop or in a thread."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from lonnymq.calls import argument
from lonnymq.client.aio import AsyncMessage
from lonnymq.client.instrumentation import Instrumentation
from lonnymq.client.sync import Message, Queue
from lonnymq.errors import invalid
from lonnymq.worker.context import run_in_context
from lonnymq.worker.handler import Handler
from lonnymq.worker.message_context import CURRENT
from lonnymq.worker.thread_pool import ThreadPool

Next = Callable[[], Awaitable[None]]
# Called around each attempt; it may raise what a handler may. A batch handler's middleware is given the list.
Middleware = Callable[[Any, Next], Awaitable[None]]
MESSAGE_FIELDS = tuple(field.name for field in fields(Message))


def require_middleware(middleware: Any) -> tuple[Middleware, ...]:
    """Return the middleware as a tuple; refuse what would let every attempt fail."""
    expected = "a sequence of async functions that take a message and the next call"
    found = tuple(argument.items("middleware", middleware, expected))
    for one in found:
        is_generator = inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one)
        if not callable(one) or inspect.isclass(one) or is_generator:
            raise invalid("middleware", one, expected)
    return found


class MiddlewareStack:
    """The first middleware is the outermost, inside the instrumentation of the worker's queue, if it has one.

    `blocking_queue` is the client of handlers in threads.
    """

    def __init__(
        self,
        middleware: Sequence[Middleware],
        threads: ThreadPool,
        blocking_queue: Queue,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._innermost_first = tuple(reversed(middleware))
        self._threads = threads
        self._blocking_queue = blocking_queue
        self._instrumentation = instrumentation
        self._has_middleware = bool(middleware) or instrumentation is not None

    def run(self, handler: Handler, messages: list[AsyncMessage]) -> Awaitable[object]:
        """Call the handler with these messages, in a context of its own."""
        subject: Any = messages if handler.is_batch else messages[0]
        if handler.is_async and not self._has_middleware:
            return run_in_context(handler.call(subject), CURRENT, messages[0])  # type: ignore[arg-type]
        return run_in_context(self._call_stack(handler, subject, messages), CURRENT, messages[0])

    async def _call_stack(self, handler: Handler, subject: Any, messages: list[AsyncMessage]) -> None:
        call: Next = partial(self.call, handler.call, handler.is_async, subject)
        for middleware in self._innermost_first:
            call = partial(middleware, subject, call)
        if self._instrumentation is not None:
            call = partial(self._instrumentation.process, handler.name, messages, call)
        await call()

    async def call(self, function: Callable[[Any], object], is_async: bool, subject: Any) -> None:
        """Call a function with a message or a list of them: on the event loop, or in a thread."""
        if is_async:
            result = function(subject)
        else:
            is_batch = isinstance(subject, list)
            messages = [self._to_blocking(one) for one in (subject if is_batch else [subject])]
            reset_token = CURRENT.set(messages[0])
            try:
                result = await self._threads.run(function, messages if is_batch else messages[0])
            finally:
                CURRENT.reset(reset_token)
        # A plain function may return an awaitable, for example one that wraps an async function.
        if inspect.isawaitable(result):
            await result

    def _to_blocking(self, message: AsyncMessage) -> Message:
        # Only the fields, and not a decoded payload that routing may have cached beside them.
        values = {name: getattr(message, name) for name in MESSAGE_FIELDS}
        return Message(**{**values, "queue": self._blocking_queue})
