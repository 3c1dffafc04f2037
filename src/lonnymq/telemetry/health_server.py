"""Answers probes about a worker, and shows its metrics: /livez, /readyz and /metrics.

It has an event loop in a thread of its own. So it can say that the loop of the handlers hangs, and a handler
that blocks it for a moment is not taken for a process that hangs. A process that is stopped does not answer.
"""

import asyncio
import importlib.util
import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from lonnymq.errors import InvalidArgument
from lonnymq.telemetry.http_server import Page, serve_http
from lonnymq.worker.health import Probe

LOGGER = logging.getLogger("lonnymq.worker")


def has_metrics() -> bool:
    """Whether /metrics can be shown: that needs the extra "prometheus"."""
    return importlib.util.find_spec("prometheus_client") is not None


@contextmanager
def serve_health(probe: Probe, host: str, port: int) -> Iterator[str]:
    """Answer requests while the block runs; yield the address. Port 0 is any free one."""
    address: Future[str] = Future()
    stop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stopped = asyncio.Event()
        stop.set_result((asyncio.get_running_loop(), stopped))
        async with serve_http(HealthPages(probe).answer, host, port) as (name, bound):
            address.set_result(f"http://{f'[{name}]' if ':' in name else name}:{bound}")
            await stopped.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except OSError as error:
            address.set_exception(error)

    thread = threading.Thread(target=run, name="lonnymq-health", daemon=True)
    thread.start()
    try:
        shown = address.result()
    except OSError as error:
        raise InvalidArgument(f"cannot listen on {host}:{port} for probes: {error}") from error
    LOGGER.info("health at %s/livez and %s/readyz", shown, shown)
    try:
        yield shown
    finally:
        loop, stopped = stop.result()
        loop.call_soon_threadsafe(stopped.set)
        thread.join(1.0)


class HealthPages:
    """What is answered to which path."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        # Probes ask again before the last one has an answer, if processes hang.
        self._lock = asyncio.Lock()

    async def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Page:
        """Answer a request; the names of headers are in lower case."""
        if method not in ("GET", "HEAD"):
            return Page(405, b"only GET and HEAD\n", headers={"allow": "GET, HEAD"})
        if path in ("/livez", "/readyz"):
            async with self._lock:
                status = await asyncio.to_thread(self._probe.status)
            reason = status.not_live if path == "/livez" else status.not_ready
            return Page(503, f"{reason}\n".encode()) if reason else Page(200, b"ok\n")
        if path == "/metrics" and has_metrics():
            return await self._metrics(headers.get("accept", ""))
        if path == "/":
            return Page(200, b"lonnymq worker: /livez /readyz /metrics\n")
        return Page(404, b"not found; there are /livez, /readyz and, with the extra prometheus, /metrics\n")

    async def _metrics(self, accept: str) -> Page:
        from lonnymq.telemetry.worker_metrics import encode_worker_metrics

        async with self._lock:
            figures = await asyncio.to_thread(self._probe.figures)
        if figures is None:
            return Page(404, b"this worker counts nothing\n")
        body, content_type = encode_worker_metrics(figures, accept)
        return Page(200, body, content_type)
