"""One attempt as a pipeline: middleware, then the handler, on the loop or in a thread."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from lonnymq.client.aio import AsyncMessage
from lonnymq.client.sync import Message, Queue
from lonnymq.worker.context import run_in_context
from lonnymq.worker.handler import Handler
from lonnymq.worker.message_context import CURRENT
from lonnymq.worker.thread_pool import ThreadPool

Next = Callable[[], Awaitable[None]]
# Around each attempt; it may raise what a handler may. Around a batch handler it is given the list.
Middleware = Callable[[Any, Next], Awaitable[None]]
FIELDS = tuple(field.name for field in fields(Message))


class MiddlewareStack:
    """`blocking_queue` is the client of handlers in threads."""

    def __init__(self, middleware: Sequence[Middleware], threads: ThreadPool, blocking_queue: Queue) -> None:
        self._middleware = tuple(reversed(middleware))
        self._threads = threads
        self._blocking_queue = blocking_queue

    def run(self, handler: Handler, messages: list[AsyncMessage]) -> Awaitable[object]:
        """Have the messages worked, in a context of their own."""
        subject: Any = messages if handler.is_batch else messages[0]
        if handler.is_async and not self._middleware:
            return run_in_context(handler.call(subject), CURRENT, messages[0])  # type: ignore[arg-type]
        return run_in_context(self._run_in_middleware(handler, subject), CURRENT, messages[0])

    async def _run_in_middleware(self, handler: Handler, subject: Any) -> None:
        call: Next = partial(self._call, handler, subject)
        for around in self._middleware:
            call = partial(around, subject, call)
        await call()

    async def _call(self, handler: Handler, subject: Any) -> None:
        if handler.is_async:
            result = handler.call(subject)
        else:
            messages = [self._blocking(one) for one in (subject if handler.is_batch else [subject])]
            on_loop = CURRENT.set(messages[0])
            try:
                result = await self._threads.run(handler.call, messages if handler.is_batch else messages[0])
            finally:
                CURRENT.reset(on_loop)
        # A plain function may hide an async one.
        if inspect.isawaitable(result):
            await result

    def _blocking(self, message: AsyncMessage) -> Message:
        # Its fields only: whoever routed it may have decoded the payload, which is kept beside them.
        given = {name: getattr(message, name) for name in FIELDS}
        return Message(**{**given, "queue": self._blocking_queue})
