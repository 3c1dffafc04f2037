"""The worker: what a process does from its start to its end."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lonnymq.client.aio import AsyncQueue
from lonnymq.connections.target import describe_target, schema_or_environment
from lonnymq.errors import is_hopeless
from lonnymq.worker.client_factory import ClientFactory
from lonnymq.worker.middleware import Middleware
from lonnymq.worker.router import Router
from lonnymq.worker.run import WorkerRun
from lonnymq.worker.settings import ExitCode, WorkerSettings
from lonnymq.worker.shutdown import Shutdown, exit_now, stop_on_signals
from lonnymq.worker.startup_check import wait_for_queue
from lonnymq.worker.supervisor import supervise
from lonnymq.worker.timeouts import cancel_leftover_tasks, close_quietly
from lonnymq.worker.verdict import Judge
from lonnymq.worker.worker_log import LOGGER

if TYPE_CHECKING:
    from lonnymq.client.sync import Queue

# Who asks a running worker to stop: signals, or the parent of its process.
Control = Callable[[Shutdown], AbstractContextManager[None]]


class Worker:
    """Works the messages of a queue: `Worker("postgresql://...", handle).run()`.

    `handler` is a function of a message, a Handler, or an object with `route(message)`, such as an App.
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
        self.middleware = tuple(middleware)
        self.shutdown = Shutdown()
        # How many attempts ended in which way, in this process.
        self.counts: Counter[str] = Counter()
        self._has_unresponsive_handlers = False
        # Called when the queue was found usable, and work begins.
        self._on_ready: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        clients = self.clients
        return (
            f"<Worker schema={clients.schema!r} {describe_target(clients.target)} handler={self.handler!r}>"
        )

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, and return the exit code."""
        settings = self.settings
        if settings.processes == 1:
            return self.run_under(partial(stop_on_signals, shutdown_s=settings.shutdown_s))
        clients, alone = replace(self.clients, given=None), replace(settings, processes=1)
        recipe = partial(Worker, clients, self.handler, settings=alone, middleware=self.middleware)
        return supervise(recipe, settings.processes, settings.shutdown_s)

    def run_under(self, control: Control, on_ready: Callable[[], object] | None = None) -> int:
        """Work on a loop of its own until the control asks to stop, and return the exit code."""
        self._on_ready = on_ready or self._on_ready
        return asyncio.run(self._run(control))

    async def serve(self) -> ExitCode:
        """Work on the running loop until `stop()`. If this is cancelled, what runs is dropped.

        Waits for a server that is away, and raises if the queue cannot be used: see `is_hopeless`.
        """
        with self.shutdown.bind_to_loop():
            if not await wait_for_queue(self.clients, self.shutdown, self.settings.call_timeout_s):
                LOGGER.info("stopped before the queue could be reached")
                return ExitCode.FINISHED
            self._on_ready()
            async with WorkerRun(self) as run:
                try:
                    await run.fetch()
                    await run.finish()
                finally:
                    await run.interrupt()
                    await run.acknowledge()
                self._has_unresponsive_handlers = run.has_unresponsive_handlers
                return run.exit_code()

    def stop(self) -> None:
        """Finish what runs, and stop; may be called from any thread."""
        self.shutdown.request()

    async def _run(self, control: Control) -> ExitCode:
        try:
            with control(self.shutdown):
                code = await self.serve()
        except Exception as error:  # noqa: BLE001 - the exit code says that there was one, the log which
            if is_hopeless(error):
                LOGGER.error("the queue cannot be used: %s", error)
                code = ExitCode.UNUSABLE
            else:
                LOGGER.exception("the worker failed")
                code = ExitCode.FAILED
        if isinstance(self.clients.given, AsyncQueue):
            # Its connections belong to this loop, which ends here.
            await close_quietly(self.clients.given.close())
        if self._has_unresponsive_handlers:
            exit_now(code)
        await cancel_leftover_tasks()
        return code
