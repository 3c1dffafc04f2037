"""A call of a task that was enqueued, and its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lonnymq.errors import ResultUnknown
from lonnymq.model import Created

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.sync import Queue

Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Enqueued(Created, Generic[Returned]):
    """The outcome of enqueueing a call; with `keep_result`, its result can be waited for."""

    queue: "Queue" = field(repr=False, compare=False)
    from_json: Callable[[Any], Returned] = field(repr=False, compare=False)

    def result(self, *, wait: timedelta | float | None = None) -> Returned:
        """Return what the task returned; wait for it up to `wait`. Raises as `Queue.result()` does."""
        return self.from_json(self.queue.result(require_id(self), wait=wait))


@dataclass(frozen=True)
class AsyncEnqueued(Created, Generic[Returned]):
    """The same, for async code."""

    queue: "AsyncQueue" = field(repr=False, compare=False)
    from_json: Callable[[Any], Returned] = field(repr=False, compare=False)

    async def result(self, *, wait: timedelta | float | None = None) -> Returned:
        """Return what the task returned; wait for it up to `wait`. Raises as `AsyncQueue.result()` does."""
        return self.from_json(await self.queue.result(require_id(self), wait=wait))


def require_id(created: Created) -> int:
    if created.id is None:
        raise ResultUnknown("the message was dropped, because its channel is full")
    return created.id
