"""One run of a worker: its parts, put together, and what it does from the first fetch to the last word."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self

from lonnymq.model.lease import fill
from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.fetch import fetch
from lonnymq.worker.inventory import Inventory
from lonnymq.worker.lease import LeaseKeeper
from lonnymq.worker.pipeline import Pipeline
from lonnymq.worker.reader import Reader
from lonnymq.worker.report import Report
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import GRACE_S, LAST_WORDS_S
from lonnymq.worker.slot import Slot
from lonnymq.worker.threads import Threads
from lonnymq.worker.timeouts import close_quietly
from lonnymq.worker.verdict import Interruption, Judge

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.worker import Worker

# For fetching, for reading large contents, for sending large states, and for crons.
OWN_CONNECTIONS = 4


class Shift:
    """Slots work while one task fetches, one acknowledges, and one keeps the leases."""

    def __init__(self, worker: "Worker") -> None:
        settings = worker.settings
        self._worker = worker
        self._settings = settings
        self._shutdown = worker.shutdown
        self._report = report = Report(settings.worker_name(), worker.counts)
        clients = worker.clients
        # Heartbeats and acknowledgements wait for nobody: not for handlers, not for large contents.
        self._own = own = clients.own(OWN_CONNECTIONS)
        self._beating, self._acknowledging = clients.own(1), clients.own(1)
        self._queue, self._blocking_queue = clients.queue(), clients.blocking_queue()
        judge, router = Judge(clients.codec), worker.router
        self._threads = Threads()
        pipeline = Pipeline(worker.middleware, self._threads, self._blocking_queue)
        self._inventory = inventory = Inventory(settings, router.is_batch, self._give_back)
        patience_s = settings.patience_s
        self._heavy = Acknowledger(own.caller, inventory, report, patience_s)
        self._acknowledger = Acknowledger(
            self._acknowledging.caller, inventory, report, patience_s, self._heavy
        )
        self._reader = Reader(own.caller, inventory, report, patience_s)
        self._keeper = LeaseKeeper(
            self._beating.caller, inventory, self._acknowledger, report, settings.lease_ms
        )
        self._slots = [
            Slot(inventory, router, pipeline, judge, self._acknowledger.add, self._prepare)
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
        for part in (self._acknowledger, self._heavy, self._keeper, self._reader):
            self._start(part.run())
        # An App has crons to tick; a plain function or a Handler has none.
        tick_forever = getattr(self._worker.handler, "tick_forever", None)
        if tick_forever is not None:
            self._start(tick_forever(self._own, self._settings.patience_s))
        self._report.tell(f"working as {self._report.worker}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*(slot.close() for slot in self._slots), return_exceptions=True)
        await asyncio.wait(self._background, timeout=1.0)
        self._threads.close()
        queues = [self._own, self._beating, self._acknowledging]
        if self._queue is not self._worker.clients.given:
            queues.append(self._queue)
        await asyncio.gather(*(close_quietly(queue.close()) for queue in queues))
        if self._blocking_queue is not self._worker.clients.given:
            self._blocking_queue.close()

    async def fetch(self) -> None:
        """Until asked to stop; then what no handler has begun goes back at once."""
        fetching = self._fetching = self._start(
            fetch(self._own.caller, self._queue, self._inventory, self._settings, self._report)
        )
        try:
            await self._shutdown.asked.wait()
        finally:
            self._tell_of_the_end()
            self._inventory.close()
            self._give_back_unstarted()
            # A call may be on its way. What it brings goes back as well.
            fetching.add_done_callback(lambda ended: self._give_back_unstarted())
            fetching.cancel()

    async def finish(self) -> None:
        """Until the handlers that run have finished, their time is over, or it must be now."""
        async with _cancelled_at_exit(self._inventory.quiet()) as quiet:
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
        async with _cancelled_at_exit(self._inventory.quiet()) as quiet:
            if any(slot.is_working for slot in running):
                await asyncio.wait({quiet}, timeout=GRACE_S)
        for slot in running:
            self.has_stragglers = slot.abandon() or self.has_stragglers

    async def acknowledge(self) -> None:
        """Send the last acknowledgements."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                if self._fetching is not None:
                    # A reply may still be on its way; what it brings goes back.
                    await asyncio.wait({self._fetching})
                await self._inventory.emptied()
        self._report.tell("stopped", **self._worker.counts, unacknowledged=len(self._inventory.held))

    def exit_code(self) -> ExitCode:
        """Return how all this went, or raise why it could not go on."""
        if self._failure is not None:
            raise self._failure
        return ExitCode.INTERRUPTED if self._was_interrupted else ExitCode.FINISHED

    def _give_back(self, attempt: "Attempt", reason: str) -> None:
        self._report.crowded(reason)
        self._acknowledger.give_back(attempt)

    def _give_back_unstarted(self) -> None:
        for attempt in self._inventory.unstarted():
            self._acknowledger.give_back(attempt)

    async def _prepare(self, attempt: "Attempt") -> bool:
        """Make a message ready that must run alone; return whether it may."""
        try:
            if attempt.is_suspect and not await self._keeper.isolate(attempt):
                return False
            if attempt.unread_bytes:
                contents = await self._reader.read([attempt])
                if attempt.message.id not in contents:
                    return False
                fill(attempt.message, contents[attempt.message.id])
        except Exception as error:  # noqa: BLE001 - it goes back, and comes again
            self._report.trouble("reading", error)
            return False
        return True

    def _tell_of_the_end(self) -> None:
        inventory = self._inventory
        unstarted = len(inventory.waiting) + len(inventory.unread) + len(inventory.being_read)
        what = "stopping"
        if inventory.working:
            handlers = "handler" if inventory.working == 1 else "handlers"
            what = (
                f"stopping: waiting up to {self._settings.shutdown_s:g} s for {inventory.working} running"
                f" {handlers}; a second SIGTERM or SIGINT interrupts them and gives their messages back"
            )
        self._report.tell(what, unstarted=unstarted)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._background.add(task)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """None of these ends by itself: the worker cannot go on."""
        if self._shutdown.asked.is_set():
            return
        error = RuntimeError("a part of the worker was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._shutdown.ask()


@contextlib.asynccontextmanager
async def _cancelled_at_exit(work: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
