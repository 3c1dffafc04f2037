"""The worker: what its process does from start to end."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lonnymq.client.aio import AsyncQueue
from lonnymq.connections.target import describe_target, schema_or_environment
from lonnymq.errors import is_permanent
from lonnymq.worker.client_factory import ClientFactory
from lonnymq.worker.handler import enter_lifespan
from lonnymq.worker.health import Health, HealthStatus, Watch
from lonnymq.worker.metrics import WorkerFigures, WorkerMetrics
from lonnymq.worker.middleware import Middleware, require_middleware
from lonnymq.worker.router import Router
from lonnymq.worker.run import WorkerRun
from lonnymq.worker.settings import ExitCode, WorkerSettings
from lonnymq.worker.shutdown import Shutdown, exit_now, stop_on_signals
from lonnymq.worker.startup_check import wait_for_queue
from lonnymq.worker.supervisor import supervise
from lonnymq.worker.systemd import watched
from lonnymq.worker.timeouts import cancel_leftover_tasks, close_quietly
from lonnymq.worker.verdict import Judge
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.client.sync import Queue

# Stops a running worker on a signal, or on a command of the supervisor.
StopControl = Callable[[Shutdown], AbstractContextManager[None]]


class Worker:
    """Processes the messages of a queue: `Worker("postgresql://...", handle).run()`.

    `handler` is a function that takes a message, a Handler, or an object with `route(message)`, such as an
    App.
    """

    def __init__(
        self,
        queue: "AsyncQueue | Queue | str | ClientFactory",
        handler: Any,
        *,
        settings: WorkerSettings | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        if isinstance(queue, str):
            queue = ClientFactory(queue, schema_or_environment(None))
        self.clients = ClientFactory.of(queue)
        self.handler = handler
        self.router = Router(handler, Judge(self.clients.codec))
        self.settings = settings or WorkerSettings()
        self.middleware = require_middleware(middleware)
        self.shutdown = Shutdown()
        self.health = Health(self.settings, self.shutdown, self.clients.server)
        # How many attempts ended with which outcome, in this process.
        self.counts: Counter[str] = Counter()
        # Counts more about them, if somebody wants metrics.
        self.metrics: WorkerMetrics | None = None
        self._has_unresponsive_handlers = False
        # Called once the queue can be used.
        self._on_ready: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        clients = self.clients
        return (
            f"<Worker schema={clients.schema!r} {describe_target(clients.target)} handler={self.handler!r}>"
        )

    def measure(self) -> WorkerMetrics:
        """Count attempts from now on, for those who want metrics; call it before the worker starts."""
        if self.metrics is None:
            self.metrics = WorkerMetrics()
            self.metrics.add_tasks(self.router.names)
        return self.metrics

    def run(self, watch: Watch | None = None) -> int:
        """Run until SIGTERM or SIGINT, and return the exit code.

        `watch` is a context manager that is given this worker, or the supervisor of several processes: both
        have a `status()` and `figures()`, which any thread may call.
        """
        settings = self.settings
        if settings.processes == 1:
            if watch is not None:
                self.measure()
            with watched(self, watch):
                return self.run_under(partial(stop_on_signals, shutdown_s=settings.shutdown_s))
        clients, single_process = replace(self.clients, given=None), replace(settings, processes=1)
        create = partial(Worker, clients, self.handler, settings=single_process, middleware=self.middleware)
        return supervise(create, settings.processes, settings.shutdown_s, watch)

    def status(self) -> HealthStatus:
        """Return whether this process is alive and ready; any thread may ask."""
        return self.health.status()

    def figures(self) -> WorkerFigures | None:
        """Return what this process has counted; None if nobody wanted metrics."""
        return None if self.metrics is None else self.metrics.figures()

    def run_under(
        self,
        control: StopControl,
        on_ready: Callable[[], object] | None = None,
        on_drain: Callable[[], object] | None = None,
    ) -> int:
        """Run on a new event loop until the control stops the worker, and return the exit code."""
        self._on_ready = on_ready or self._on_ready
        self.shutdown.on_drain = on_drain or self.shutdown.on_drain
        # Objects that exist now live as long as the worker. To examine them in each garbage collection would
        # take a worker with fast handlers 7 % of its time.
        gc.freeze()
        try:
            return asyncio.run(self._run(control))
        finally:
            gc.unfreeze()

    async def serve(self) -> ExitCode:
        """Run on the current event loop until `stop()`. If this is cancelled, handlers are interrupted.

        Waits for a server that cannot be reached, and raises if the queue cannot be used: see `is_permanent`.
        """
        with self.shutdown.bind_to_loop(), self.health.follow_loop():
            if not await wait_for_queue(self.clients, self.shutdown, self.settings.call_timeout_s):
                LOGGER.info("stopped before the queue could be reached")
                return ExitCode.FINISHED
            async with AsyncExitStack() as stack:
                if not await self._enter_lifespan(stack):
                    LOGGER.info("stopped before the lifespan of the app had begun")
                    return ExitCode.FINISHED
                self._on_ready()
                return await self._process()

    async def _enter_lifespan(self, stack: AsyncExitStack) -> bool:
        """Enter the lifespan of an app; return False if the worker is asked to stop before that is done."""

        async def interrupt() -> None:
            await self.shutdown.requested.wait()
            limit.reschedule(asyncio.get_running_loop().time())

        # Not in a task of its own: some context managers must be left by the task that entered them.
        try:
            async with asyncio.timeout(None) as limit:
                interrupting = asyncio.create_task(interrupt())
                try:
                    await stack.enter_async_context(enter_lifespan(self.handler))
                finally:
                    interrupting.cancel()
        except TimeoutError:
            if limit.expired():
                return False
            raise
        return True

    async def _process(self) -> ExitCode:
        async with WorkerRun(self) as run:
            try:
                await run.fetch()
                await run.finish()
            finally:
                await run.interrupt()
                await run.flush()
            self._has_unresponsive_handlers = run.has_unresponsive_handlers
            return run.exit_code()

    def stop(self) -> None:
        """Let running handlers finish, and stop; may be called from any thread."""
        self.shutdown.request()

    async def _run(self, control: StopControl) -> ExitCode:
        try:
            with control(self.shutdown):
                code = await self.serve()
        except Exception as error:  # noqa: BLE001 - the log has the error, the exit code says that there was one
            if is_permanent(error):
                LOGGER.error("the queue cannot be used: %s", error)
                code = ExitCode.UNUSABLE
            else:
                LOGGER.exception("the worker failed")
                code = ExitCode.FAILED
        if isinstance(self.clients.given, AsyncQueue):
            # Its connections belong to this event loop, which ends here.
            await close_quietly(self.clients.given.close())
        if self._has_unresponsive_handlers:
            exit_now(code)
        await cancel_leftover_tasks()
        return code
