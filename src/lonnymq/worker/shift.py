"""One run of a worker: its parts, put together, and what it does from the first fetch to the last word."""

import asyncio
import contextlib
import importlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self

from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.fetch import fetch
from lonnymq.worker.hand import Hand
from lonnymq.worker.lease import LeaseKeeper
from lonnymq.worker.patience import PASSING, within
from lonnymq.worker.pipeline import Pipeline
from lonnymq.worker.report import Report
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import GRACE_S, LAST_WORDS_S
from lonnymq.worker.slot import Slot
from lonnymq.worker.threads import Threads
from lonnymq.worker.verdict import GIVEN_BACK, Interruption, Judge

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.worker.worker import Worker


class Shift:
    """Slots work while one task fetches, one acknowledges, and one keeps the leases."""

    def __init__(self, worker: "Worker") -> None:
        settings = worker.settings
        self._worker = worker
        self._settings = settings
        self._shutdown = worker.shutdown
        self._queue = worker.clients.queue()
        self._twin = worker.clients.twin()
        self._report = report = Report(settings.worker_name(), worker.counts)
        judge, router = Judge(self._queue.codec), worker.router
        self._threads = Threads()
        pipeline = Pipeline(worker.middleware, self._threads, self._twin)
        caller = self._queue.caller
        self._hand = Hand(settings, router.is_batch)
        self._acknowledger = Acknowledger(caller, self._hand, report, settings.patience_s)
        self._keeper = LeaseKeeper(caller, self._hand, self._acknowledger, report, settings.lease_ms)
        self._slots = [
            Slot(self._hand, router, pipeline, judge, self._acknowledger.add)
            for _ in range(settings.concurrency)
        ]
        for slot in self._slots:
            slot.task.add_done_callback(self._ended)
        self._background: set[asyncio.Task[None]] = set()
        self._fetching: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._was_interrupted = False
        # Handlers that do not listen, and would keep the loop from ending.
        self.has_stragglers = False

    async def __aenter__(self) -> Self:
        self._start(self._acknowledger.run())
        self._start(self._keeper.run())
        crons = getattr(self._worker.handler, "crons", None)
        if crons is not None:
            ticking = importlib.import_module("lonnymq.tasks.cron")
            self._start(ticking.tick_forever(self._queue, crons, self._settings.patience_s))
        self._report.tell(f"working as {self._report.worker}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*(slot.close() for slot in self._slots), return_exceptions=True)
        await asyncio.wait(self._background, timeout=1.0)
        self._threads.close()
        if self._queue is not self._worker.clients.given:
            await closed(self._queue)
        if self._twin is not self._worker.clients.given:
            self._twin.close()

    async def fetch(self) -> None:
        """Until asked to stop; then what no handler has begun goes back at once."""
        fetching = self._fetching = self._start(fetch(self._queue, self._hand, self._settings, self._report))
        try:
            await self._shutdown.asked.wait()
        finally:
            self._report.tell("stopping", running=self._hand.running, unstarted=len(self._hand.waiting))
            self._hand.close()
            self._give_back()
            # A call may be on its way. What it brings goes back as well.
            fetching.add_done_callback(lambda ended: self._give_back())
            fetching.cancel()

    async def finish(self) -> None:
        """Until the handlers that run have finished, their time is over, or it must be now."""
        async with _cancelled_at_exit(self._hand.quiet()) as quiet:
            async with _cancelled_at_exit(self._shutdown.now.wait()) as now:
                await asyncio.wait(
                    {quiet, now}, timeout=self._settings.shutdown_s, return_when=asyncio.FIRST_COMPLETED
                )

    async def interrupt(self) -> None:
        """Cancel the handlers that still run, and give their messages back."""
        running = [slot for slot in self._slots if slot.is_working]
        self._was_interrupted = bool(running)
        for slot in running:
            slot.interrupt(Interruption.STOPPED)
        async with _cancelled_at_exit(self._hand.quiet()) as quiet:
            if any(slot.is_working for slot in running):
                await asyncio.wait({quiet}, timeout=GRACE_S)
        for slot in running:
            self.has_stragglers = slot.abandon() or self.has_stragglers

    async def acknowledge(self) -> None:
        """Say the last words to the queue."""
        if self._fetching is not None:
            await asyncio.wait({self._fetching}, timeout=GRACE_S)
        await self._acknowledger.finish(LAST_WORDS_S)
        self._report.tell("stopped", **self._worker.counts, unacknowledged=len(self._hand.held))

    def exit_code(self) -> ExitCode:
        """Return how all this went, or raise why it could not go on."""
        if self._failure is not None:
            raise self._failure
        return ExitCode.INTERRUPTED if self._was_interrupted else ExitCode.FINISHED

    def _give_back(self) -> None:
        for attempt in self._hand.unstarted():
            self._acknowledger.add(attempt, GIVEN_BACK)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._background.add(task)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """None of these ends by itself: the worker cannot go on."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self._shutdown.ask()


async def closed(queue: "AsyncQueue") -> None:
    """Close a client, as far as its connections still let themselves be closed."""
    with contextlib.suppress(*PASSING):
        await within(LAST_WORDS_S, queue.close())


@contextlib.asynccontextmanager
async def _cancelled_at_exit(work: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
