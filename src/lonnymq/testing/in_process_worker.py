"""A worker's own parts, put together for one slot and one message at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from lonnymq.model import Dequeued, DequeueOutcome
from lonnymq.testing.outside import Job, Outside
from lonnymq.testing.record import Record
from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.inventory import Inventory
from lonnymq.worker.pipeline import Middleware, Pipeline
from lonnymq.worker.router import Router
from lonnymq.worker.settings import WorkerSettings
from lonnymq.worker.slot import Slot
from lonnymq.worker.verdict import Judge

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage, AsyncQueue
    from lonnymq.client.sync import Queue
    from lonnymq.worker.attempt import Attempt

# Nobody sends heartbeats here, and a debugger may stop everything for a while.
SETTINGS = WorkerSettings(concurrency=1, prefetch=0, lease_s=3600, name="test")


class Bench:
    """Works what it is given, and records how that ended."""

    def __init__(
        self, queue: "AsyncQueue", blocking_queue: "Queue", handler: Any, middleware: Sequence[Middleware]
    ) -> None:
        news = asyncio.Event()
        judge = Judge(queue.codec)
        router = Router(handler, judge)
        self.limit = SETTINGS.batch_size if router.is_batch else 1
        self.record = Record(SETTINGS.worker_name(), news)
        self._news = news
        self._outside = Outside(news)
        self._inventory = Inventory(SETTINGS, router.is_batch, self._give_back)
        self._acknowledger = Acknowledger(queue.caller, self._inventory, self.record, SETTINGS.patience_s)
        pipeline = Pipeline([self.record.around, *middleware], self._outside, blocking_queue)
        self._slot = Slot(self._inventory, router, pipeline, judge, self._acknowledger.add, self._prepare)
        self._acknowledging = asyncio.create_task(self._acknowledger.run())

    async def work(self, messages: Iterable["AsyncMessage"]) -> AsyncIterator[Job]:
        """Have messages worked and acknowledged; what blocks is yielded, for the caller to call."""
        self._inventory.take(Dequeued(DequeueOutcome.LEASED, 0, tuple(messages)))
        while self._inventory.held:
            await self._news.wait()
            self._news.clear()
            while self._outside.jobs:
                yield self._outside.jobs.popleft()

    def _give_back(self, attempt: "Attempt", reason: str) -> None:
        self._acknowledger.give_back(attempt)

    async def _prepare(self, attempt: "Attempt") -> bool:
        """Every message runs alone here, and has been read."""
        return True

    async def close(self) -> None:
        self._acknowledging.cancel()
        await asyncio.wait({self._acknowledging})
        await self._slot.close()


@asynccontextmanager
async def bench(
    queue: "AsyncQueue", blocking_queue: "Queue", handler: Any, middleware: Sequence[Middleware]
) -> AsyncIterator[Bench]:
    one = Bench(queue, blocking_queue, handler, middleware)
    try:
        yield one
    finally:
        await one.close()
