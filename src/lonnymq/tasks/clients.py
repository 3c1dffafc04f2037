"""The clients with which a program enqueues tasks: one that blocks, and one for each event loop."""

import asyncio
import threading
from typing import TypeVar

from lonnymq.client.aio import AsyncQueue
from lonnymq.client.sync import Queue
from lonnymq.errors import WrongClient
from lonnymq.worker.client_factory import ClientFactory
from lonnymq.worker.message_context import CURRENT

Client = TypeVar("Client", bound=Queue | AsyncQueue)


class TaskClients:
    """Creates the client that the calling code needs from the one that the app was given.

    Inside a handler, this is the client of its worker if that works on the same queue.
    """

    def __init__(self, given: Queue | AsyncQueue) -> None:
        self._given = given
        self._blocking: Queue | None = given if isinstance(given, Queue) else None
        self._async_queues: dict[asyncio.AbstractEventLoop, AsyncQueue] = {}
        self._lock = threading.Lock()

    def blocking_queue(self, task: str) -> Queue:
        """Return the client for `enqueue()`; raise on an event loop, which that would block."""
        if _running_loop() is not None:
            raise WrongClient(
                f"{task}.enqueue() would block the event loop: await {task}.enqueue_async(...) in async code"
            )
        if (current := self._client_of_handler(Queue)) is not None:
            return current
        with self._lock:
            if self._blocking is None:
                self._blocking = ClientFactory.of(self._given).blocking_queue()
            return self._blocking

    def async_queue(self, task: str) -> AsyncQueue:
        """Return the client for `enqueue_async()`; raise if no event loop is running."""
        if (loop := _running_loop()) is None:
            raise WrongClient(
                f"{task}.enqueue_async() needs an event loop: call {task}.enqueue(...) in blocking code"
            )
        if isinstance(self._given, AsyncQueue):
            return self._given
        if (current := self._client_of_handler(AsyncQueue)) is not None:
            return current
        with self._lock:
            # The connections of a loop that was closed, as by asyncio.run(), are of no use any more.
            for other in [one for one in self._async_queues if one.is_closed()]:
                del self._async_queues[other]
            if loop not in self._async_queues:
                self._async_queues[loop] = ClientFactory.of(self._given).async_queue()
            return self._async_queues[loop]

    def close(self) -> None:
        """Close the blocking client."""
        if self._blocking is not None:
            self._blocking.close()

    async def close_async(self) -> None:
        """Close the client of this event loop."""
        queue = self._given if isinstance(self._given, AsyncQueue) else None
        queue = self._async_queues.pop(asyncio.get_running_loop(), queue)
        if queue is not None:
            await queue.close()

    def _client_of_handler(self, kind: type[Client]) -> Client | None:
        message = CURRENT.get(None)
        queue = None if message is None else message.queue
        if isinstance(queue, kind) and _address(queue) == _address(self._given):
            return queue
        return None


def _address(queue: Queue | AsyncQueue) -> tuple[object, str]:
    return queue.caller.source.target, queue.schema


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
