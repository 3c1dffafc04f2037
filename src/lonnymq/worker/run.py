"""One run of a worker: its parts and the order in which they start and stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, Self

import psycopg

from lonnymq.errors import LonnyError
from lonnymq.model.lease import set_content
from lonnymq.worker.acknowledger import Acknowledger
from lonnymq.worker.content_reader import ContentReader
from lonnymq.worker.fetch import fetch
from lonnymq.worker.group_keeper import GroupKeeper
from lonnymq.worker.history_keeper import HistoryKeeper
from lonnymq.worker.inventory import Inventory
from lonnymq.worker.lease_keeper import LeaseKeeper
from lonnymq.worker.middleware import MiddlewareStack
from lonnymq.worker.presence import Identity, Presence
from lonnymq.worker.reporter import Reporter
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

# For fetching, for reading large contents, for sending large states, and for crons, groups and history.
INTERNAL_CONNECTIONS = 4


class WorkerRun:
    """Slots run handlers while one task fetches, one acknowledges, and one extends leases."""

    def __init__(self, worker: "Worker") -> None:
        settings = worker.settings
        self._worker = worker
        self._settings = settings
        self._shutdown = worker.shutdown
        identity = Identity.create(settings.worker_name())
        metrics = worker.metrics
        self._log = log = WorkerLog(identity.name, worker.counts, metrics.record if metrics else None)
        clients = worker.clients
        # Heartbeats and acknowledgements have connections of their own: they never wait for handlers or for
        # large contents.
        self._internal_queue = internal = clients.internal_queue(INTERNAL_CONNECTIONS)
        self._heartbeat_queue, self._acknowledge_queue = clients.internal_queue(1), clients.internal_queue(1)
        self._async_queue, self._blocking_queue = clients.async_queue(), clients.blocking_queue()
        judge, router = Judge(clients.codec), worker.router
        self._threads = ThreadPool()
        middleware = MiddlewareStack(
            worker.middleware, self._threads, self._blocking_queue, clients.instrumentation
        )
        self._inventory = inventory = Inventory(settings, router.is_batch, self._give_back)
        if metrics is not None:
            metrics.attach(inventory, settings.concurrency)
            metrics.add_tasks(router.names)
        timeout_s = settings.call_timeout_s
        self._group_keeper = groups = GroupKeeper(internal.caller, log, timeout_s)
        for_large_states = Acknowledger(internal.caller, inventory, log, timeout_s, groups.message_ended)
        self._acknowledger = Acknowledger(
            self._acknowledge_queue.caller, inventory, log, timeout_s, groups.message_ended, for_large_states
        )
        self._content_reader = ContentReader(internal.caller, inventory, log, timeout_s)
        self._lease_keeper = LeaseKeeper(
            self._heartbeat_queue.caller, inventory, self._acknowledger, log, settings.lease_ms
        )
        presence = Presence(internal.caller, identity, log, timeout_s)
        self._reporter = Reporter(
            internal.caller,
            presence,
            inventory,
            self._shutdown,
            log,
            call_timeout_s=timeout_s,
            slots=settings.concurrency,
            tasks=router.names,
        )
        self._parts = (
            self._acknowledger,
            for_large_states,
            self._lease_keeper,
            self._content_reader,
            presence,
            self._reporter,
            groups,
            HistoryKeeper(internal.caller, log, timeout_s),
        )
        self._slots = [
            Slot(inventory, router, middleware, judge, self._acknowledger.add, self._prepare_exclusive)
            for _ in range(settings.concurrency)
        ]
        worker.health.follow_run(inventory, self._slots)
        for slot in self._slots:
            slot.task.add_done_callback(self._stop_if_failed)
        self._background: set[asyncio.Task[None]] = set()
        self._fetching: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._was_interrupted = False
        # Handlers that ignore their interruption would keep the loop from ending.
        self.has_unresponsive_handlers = False

    async def __aenter__(self) -> Self:
        for part in self._parts:
            self._start(part.run())
        # An App has crons to tick; a function or a Handler has none.
        tick_forever = getattr(self._worker.handler, "tick_forever", None)
        if tick_forever is not None:
            self._start(tick_forever(self._internal_queue, self._settings.call_timeout_s))
        self._log.info(f"working as {self._log.worker}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*(slot.close() for slot in self._slots), return_exceptions=True)
        await asyncio.wait(self._background, timeout=1.0)
        self._threads.close()
        queues = [self._internal_queue, self._heartbeat_queue, self._acknowledge_queue]
        if self._async_queue is not self._worker.clients.given:
            queues.append(self._async_queue)
        await asyncio.gather(*(close_quietly(queue.close()) for queue in queues))
        if self._blocking_queue is not self._worker.clients.given:
            self._blocking_queue.close()

    async def fetch(self) -> None:
        """Fetch until asked to stop, then give back the messages that no handler has started."""
        fetching = self._fetching = self._start(
            fetch(self._internal_queue.caller, self._async_queue, self._inventory, self._settings, self._log)
        )
        try:
            await self._shutdown.draining.wait()
        finally:
            self._log_stopping()
            self._inventory.close()
            self._give_back_unstarted()
            # The result of a call that is still running is given back as well.
            fetching.add_done_callback(lambda ended: self._give_back_unstarted())
            fetching.cancel()

    async def finish(self) -> None:
        """Wait until running handlers have finished, `shutdown_s` is over, or a second signal arrives.

        While the worker drains, that time has not begun.
        """
        async with _in_background(self._inventory.wait_until_idle()) as idle:
            async with _in_background(self._shutdown.requested.wait()) as requested:
                await asyncio.wait({idle, requested}, return_when=asyncio.FIRST_COMPLETED)
            async with _in_background(self._shutdown.immediate.wait()) as immediate:
                await asyncio.wait(
                    {idle, immediate},
                    timeout=self._settings.shutdown_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )

    async def interrupt(self) -> None:
        """Cancel the handlers that still run, and give their messages back."""
        running = [slot for slot in self._slots if slot.has_attempts]
        self._was_interrupted = bool(running)
        for slot in running:
            slot.interrupt(Interruption.STOPPED)
        async with _in_background(self._inventory.wait_until_idle()) as idle:
            if any(slot.has_attempts for slot in running):
                await asyncio.wait({idle}, timeout=GRACE_S)
        for slot in running:
            self.has_unresponsive_handlers = slot.abandon() or self.has_unresponsive_handlers

    async def flush(self) -> None:
        """Send pending acknowledgements."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                if self._fetching is not None:
                    # A call may still be running; the messages that it returns are given back.
                    await asyncio.wait({self._fetching})
                await self._inventory.wait_until_empty()
                with contextlib.suppress(psycopg.Error, LonnyError, OSError):
                    # If it fails, another worker's sweep finds these groups.
                    await self._group_keeper.check()
                await self._reporter.leave()
        self._log.info("stopped", **self._worker.counts, unacknowledged=len(self._inventory.held))

    def exit_code(self) -> ExitCode:
        """Return how the run ended, or raise the error that ended it."""
        if self._failure is not None:
            raise self._failure
        return ExitCode.INTERRUPTED if self._was_interrupted else ExitCode.FINISHED

    def _give_back(self, attempt: "Attempt", reason: str) -> None:
        self._log.warn_giving_back(reason)
        self._acknowledger.give_back(attempt)

    def _give_back_unstarted(self) -> None:
        for attempt in self._inventory.take_unstarted():
            self._acknowledger.give_back(attempt)

    async def _prepare_exclusive(self, attempt: "Attempt") -> bool:
        """Prepare a message that must run alone; return whether it may run."""
        try:
            if attempt.is_suspect and not await self._lease_keeper.start_exclusive(attempt):
                return False
            if attempt.unread_bytes:
                contents = await self._content_reader.read([attempt])
                if attempt.message.id not in contents:
                    return False
                set_content(attempt.message, contents[attempt.message.id])
        except Exception as error:  # noqa: BLE001 - the message is given back and delivered again
            self._log.log_failure("reading contents", error)
            return False
        return True

    def _log_stopping(self) -> None:
        running = self._inventory.active_slots
        event = "stopping"
        if running:
            noun = "handler" if running == 1 else "handlers"
            event = f"draining: waiting for {running} running {noun}"
            if self._shutdown.requested.is_set():
                event = (
                    f"stopping: waiting up to {self._settings.shutdown_s:g} s for {running} running {noun};"
                    " a second SIGTERM or SIGINT interrupts them and gives their messages back"
                )
        self._log.info(event, unstarted=self._inventory.unstarted_count)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._stop_if_failed)
        self._background.add(task)
        return task

    def _stop_if_failed(self, task: "asyncio.Task[None]") -> None:
        """Stop the worker if one of its tasks ends, because none of them ends by itself."""
        if self._shutdown.requested.is_set() or (task.cancelled() and self._shutdown.draining.is_set()):
            return
        error = RuntimeError("a task of the worker was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._shutdown.request()


@contextlib.asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, Any]) -> "AsyncIterator[asyncio.Task[Any]]":
    """Run a coroutine as a task until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
