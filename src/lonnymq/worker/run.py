"""One run of a worker: its parts, put together, and what it does from the first fetch to the last word."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self

from lonnymq.model.lease import fill
from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.content_reader import ContentReader
from lonnymq.worker.fetch import fetch
from lonnymq.worker.inventory import Inventory
from lonnymq.worker.lease_keeper import LeaseKeeper
from lonnymq.worker.middleware import MiddlewareStack
from lonnymq.worker.settings import ExitCode
from lonnymq.worker.shutdown import FLUSH_S, GRACE_S
from lonnymq.worker.slot import Slot
from lonnymq.worker.thread_pool import ThreadPool
from lonnymq.worker.timeouts import close_quietly
from lonnymq.worker.verdict import Interruption, Judge
from lonnymq.worker.worker_log import WorkerLog

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.worker import Worker

# For fetching, for reading large contents, for sending large states, and for crons.
INTERNAL_CONNECTIONS = 4


class WorkerRun:
    """Slots work while one task fetches, one acknowledges, and one keeps the leases."""

    def __init__(self, worker: "Worker") -> None:
        settings = worker.settings
        self._worker = worker
        self._settings = settings
        self._shutdown = worker.shutdown
        self._log = log = WorkerLog(settings.worker_name(), worker.counts)
        clients = worker.clients
        # Heartbeats and acknowledgements wait for nobody: not for handlers, not for large contents.
        self._own = own = clients.internal_queue(INTERNAL_CONNECTIONS)
        self._heartbeat_queue, self._acknowledge_queue = clients.internal_queue(1), clients.internal_queue(1)
        self._queue, self._blocking_queue = clients.async_queue(), clients.blocking_queue()
        judge, router = Judge(clients.codec), worker.router
        self._threads = ThreadPool()
        pipeline = MiddlewareStack(worker.middleware, self._threads, self._blocking_queue)
        self._inventory = inventory = Inventory(settings, router.is_batch, self._give_back)
        call_timeout_s = settings.call_timeout_s
        self._large = Acknowledger(own.caller, inventory, log, call_timeout_s)
        self._acknowledger = Acknowledger(
            self._acknowledge_queue.caller, inventory, log, call_timeout_s, self._large
        )
        self._reader = ContentReader(own.caller, inventory, log, call_timeout_s)
        self._keeper = LeaseKeeper(
            self._heartbeat_queue.caller, inventory, self._acknowledger, log, settings.lease_ms
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
        self.has_unresponsive_handlers = False

    async def __aenter__(self) -> Self:
        for part in (self._acknowledger, self._large, self._keeper, self._reader):
            self._start(part.run())
        # An App has crons to tick; a plain function or a Handler has none.
        tick_forever = getattr(self._worker.handler, "tick_forever", None)
        if tick_forever is not None:
            self._start(tick_forever(self._own, self._settings.call_timeout_s))
        self._log.info(f"working as {self._log.worker}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*(slot.close() for slot in self._slots), return_exceptions=True)
        await asyncio.wait(self._background, timeout=1.0)
        self._threads.close()
        queues = [self._own, self._heartbeat_queue, self._acknowledge_queue]
        if self._queue is not self._worker.clients.given:
            queues.append(self._queue)
        await asyncio.gather(*(close_quietly(queue.close()) for queue in queues))
        if self._blocking_queue is not self._worker.clients.given:
            self._blocking_queue.close()

    async def fetch(self) -> None:
        """Until asked to stop; then what no handler has begun goes back at once."""
        fetching = self._fetching = self._start(
            fetch(self._own.caller, self._queue, self._inventory, self._settings, self._log)
        )
        try:
            await self._shutdown.requested.wait()
        finally:
            self._log_stopping()
            self._inventory.close()
            self._give_back_unstarted()
            # A call may be on its way. What it brings goes back as well.
            fetching.add_done_callback(lambda ended: self._give_back_unstarted())
            fetching.cancel()

    async def finish(self) -> None:
        """Until the handlers that run have finished, their time is over, or it must be now."""
        async with _cancelled_at_exit(self._inventory.wait_until_idle()) as quiet:
            async with _cancelled_at_exit(self._shutdown.immediate.wait()) as now:
                await asyncio.wait(
                    {quiet, now}, timeout=self._settings.shutdown_s, return_when=asyncio.FIRST_COMPLETED
                )

    async def interrupt(self) -> None:
        """Cancel the handlers that still run, and give their messages back."""
        running = [slot for slot in self._slots if slot.is_working]
        self._was_interrupted = bool(running)
        for slot in running:
            slot.interrupt(Interruption.STOPPED)
        async with _cancelled_at_exit(self._inventory.wait_until_idle()) as quiet:
            if any(slot.is_working for slot in running):
                await asyncio.wait({quiet}, timeout=GRACE_S)
        for slot in running:
            self.has_unresponsive_handlers = slot.abandon() or self.has_unresponsive_handlers

    async def acknowledge(self) -> None:
        """Send the last acknowledgements."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                if self._fetching is not None:
                    # A reply may still be on its way; what it brings goes back.
                    await asyncio.wait({self._fetching})
                await self._inventory.wait_until_empty()
        self._log.info("stopped", **self._worker.counts, unacknowledged=len(self._inventory.held))

    def exit_code(self) -> ExitCode:
        """Return how all this went, or raise why it could not go on."""
        if self._failure is not None:
            raise self._failure
        return ExitCode.INTERRUPTED if self._was_interrupted else ExitCode.FINISHED

    def _give_back(self, attempt: "Attempt", reason: str) -> None:
        self._log.warn_given_back(reason)
        self._acknowledger.give_back(attempt)

    def _give_back_unstarted(self) -> None:
        for attempt in self._inventory.take_unstarted():
            self._acknowledger.give_back(attempt)

    async def _prepare(self, attempt: "Attempt") -> bool:
        """Make a message ready that must run alone; return whether it may."""
        try:
            if attempt.is_suspect and not await self._keeper.declare_exclusive(attempt):
                return False
            if attempt.unread_bytes:
                contents = await self._reader.read([attempt])
                if attempt.message.id not in contents:
                    return False
                fill(attempt.message, contents[attempt.message.id])
        except Exception as error:  # noqa: BLE001 - it goes back, and comes again
            self._log.log_failure("reading", error)
            return False
        return True

    def _log_stopping(self) -> None:
        inventory = self._inventory
        unstarted = len(inventory.waiting) + len(inventory.unread) + len(inventory.being_read)
        what = "stopping"
        if inventory.active_slots:
            noun = "handler" if inventory.active_slots == 1 else "handlers"
            what = (
                f"stopping: waiting up to {self._settings.shutdown_s:g} s for {inventory.active_slots}"
                f" running {noun}; a second SIGTERM or SIGINT interrupts them and gives their messages back"
            )
        self._log.info(what, unstarted=unstarted)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._background.add(task)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """None of these ends by itself: the worker cannot go on."""
        if self._shutdown.requested.is_set():
            return
        error = RuntimeError("a part of the worker was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._shutdown.request()


@contextlib.asynccontextmanager
async def _cancelled_at_exit(work: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
