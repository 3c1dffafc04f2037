"""A queue's metrics as an ASGI application, and as a collector. Needs the extra "prometheus"."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lonnymq.telemetry.http_server import NO_STORE, Page
from lonnymq.telemetry.monitor import Look, Monitor, MonitorSettings
from lonnymq.telemetry.pages import QueuePages
from lonnymq.telemetry.queue_metrics import describe_queue, queue_metrics

if TYPE_CHECKING:
    from concurrent.futures import Future

    from prometheus_client.metrics_core import Metric

    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.sync import Queue

__all__ = ["MonitorSettings", "QueueCollector", "make_asgi_app"]

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
# How much longer than a look may take its caller waits for it.
MARGIN_S = 5.0


def make_asgi_app(queue: "AsyncQueue | Queue | str", settings: MonitorSettings | None = None) -> AsgiApp:
    """Return an application to mount, for example at "/metrics"; below it, /demand is for autoscalers.

    It connects by itself when it is first asked; `queue` says only to where.
    """
    pages: dict[asyncio.AbstractEventLoop, QueuePages] = {}

    async def app(
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"this application answers HTTP requests only, not {scope['type']!r}")
        loop = asyncio.get_running_loop()
        if loop not in pages:
            # Connections belong to a loop; a test may use several, one after another.
            pages.clear()
            pages[loop] = QueuePages(Monitor(queue, settings))
        path, root = str(scope["path"]), str(scope.get("root_path") or "").rstrip("/")
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        page = await pages[loop].answer(scope["method"], "/metrics" if path in ("", "/") else path, headers)
        await _send(page, send, is_head=scope["method"] == "HEAD")

    return app


async def _send(page: Page, send: Callable[[Message], Awaitable[None]], *, is_head: bool) -> None:
    headers = {
        "content-type": page.content_type,
        "content-length": str(len(page.body)),
        **NO_STORE,
        **page.headers,
    }
    await send(
        {
            "type": "http.response.start",
            "status": page.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": b"" if is_head else page.body})


class QueueCollector:
    """A collector for a registry of prometheus_client: `REGISTRY.register(QueueCollector(queue))`.

    It connects by itself, from a thread of its own, when the registry is first scraped; `queue` says only to
    where. A registry can have one of them.
    """

    def __init__(self, queue: "AsyncQueue | Queue | str", settings: MonitorSettings | None = None) -> None:
        self._queue = queue
        self._settings = settings or MonitorSettings()
        self._lock = threading.Lock()
        self._pid = 0
        # Checks the arguments; the one that is used belongs to the thread.
        self._monitor = Monitor(queue, self._settings)
        self._loop: asyncio.AbstractEventLoop | None = None

    def describe(self) -> "Iterator[Metric]":
        return describe_queue()

    def collect(self) -> "Iterator[Metric]":
        return queue_metrics(self._look(), time.monotonic())

    def close(self) -> None:
        """Close the connection, and end the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._pid == os.getpid():
                with suppress(TimeoutError):
                    asyncio.run_coroutine_threadsafe(self._monitor.close(), loop).result(MARGIN_S)
                loop.call_soon_threadsafe(loop.stop)

    def _look(self) -> Look:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                # Neither a thread nor a connection survives a fork.
                self._pid, self._loop = os.getpid(), asyncio.new_event_loop()
                self._monitor = Monitor(self._queue, self._settings)
                threading.Thread(
                    target=_run_forever, args=(self._loop,), name="lonnymq-metrics", daemon=True
                ).start()
            looking: Future[Look] = asyncio.run_coroutine_threadsafe(self._monitor.look(), self._loop)
        try:
            return looking.result(self._settings.timeout_s + MARGIN_S)
        except TimeoutError:
            return Look(time.monotonic(), self._settings.timeout_s, error="no answer in time")


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
