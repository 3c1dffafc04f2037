"""A worker with one slot, made from the parts of a real one, that runs in the test's process."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from lonnymq.model import Dequeued, DequeueOutcome
from lonnymq.testing.blocking_calls import BlockingCall, BlockingCalls
from lonnymq.testing.recorder import Recorder
from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.group_keeper import GroupKeeper
from lonnymq.worker.inventory import Inventory
from lonnymq.worker.middleware import Middleware, MiddlewareStack
from lonnymq.worker.router import Router
from lonnymq.worker.settings import WorkerSettings
from lonnymq.worker.slot import Slot
from lonnymq.worker.verdict import Judge

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncMessage, AsyncQueue
    from lonnymq.client.sync import Queue
    from lonnymq.worker.attempt import Attempt

# No heartbeats are sent here, and a debugger may stop the process for a while.
SETTINGS = WorkerSettings(concurrency=1, prefetch=0, lease_s=3600, name="test")


class InProcessWorker:
    """Processes messages one at a time, and records how their attempts end."""

    def __init__(
        self, queue: "AsyncQueue", blocking_queue: "Queue", handler: Any, middleware: Sequence[Middleware]
    ) -> None:
        activity = asyncio.Event()
        judge = Judge(queue.codec)
        router = Router(handler, judge)
        self.limit = SETTINGS.batch_size if router.is_batch else 1
        self.recorder = Recorder(SETTINGS.worker_name(), activity)
        self._activity = activity
        self._blocking_calls = BlockingCalls(activity)
        self._inventory = Inventory(SETTINGS, router.is_batch, self._give_back)
        self._group_keeper = GroupKeeper(queue.caller, self.recorder, SETTINGS.call_timeout_s)
        self._acknowledger = Acknowledger(
            queue.caller,
            self._inventory,
            self.recorder,
            SETTINGS.call_timeout_s,
            self._group_keeper.message_ended,
        )
        stack = MiddlewareStack(
            [self.recorder.around, *middleware],
            self._blocking_calls,
            blocking_queue,
            queue.caller.instrumentation,
        )
        self._slot = Slot(self._inventory, router, stack, judge, self._acknowledger.add, self._prepare)
        self._acknowledging = asyncio.create_task(self._acknowledger.run())

    async def work(self, messages: Iterable["AsyncMessage"]) -> AsyncIterator[BlockingCall]:
        """Work and acknowledge messages; yield calls that block, for the caller to run."""
        self._inventory.add(Dequeued(DequeueOutcome.LEASED, 0, tuple(messages)))
        while self._inventory.held:
            await self._activity.wait()
            self._activity.clear()
            while self._blocking_calls.pending:
                yield self._blocking_calls.pending.popleft()
        await self._group_keeper.check()

    def _give_back(self, attempt: "Attempt", reason: str) -> None:
        self._acknowledger.give_back(attempt)

    async def _prepare(self, attempt: "Attempt") -> bool:
        """Every message is already read and runs alone here."""
        return True

    async def close(self) -> None:
        self._acknowledging.cancel()
        await asyncio.wait({self._acknowledging})
        await self._slot.close()


@asynccontextmanager
async def in_process_worker(
    queue: "AsyncQueue", blocking_queue: "Queue", handler: Any, middleware: Sequence[Middleware]
) -> AsyncIterator[InProcessWorker]:
    worker = InProcessWorker(queue, blocking_queue, handler, middleware)
    try:
        yield worker
    finally:
        await worker.close()
