"""The exporter: a process that shows the metrics of a queue to Prometheus."""

import asyncio
import logging
import signal

from lonnymq.telemetry.http_server import serve_http
from lonnymq.telemetry.monitor import Monitor, MonitorSettings
from lonnymq.telemetry.pages import QueuePages
from lonnymq.worker.client_factory import ClientFactory

LOGGER = logging.getLogger("lonnymq.exporter")


def run_exporter(factory: ClientFactory, settings: MonitorSettings, host: str, port: int) -> None:
    """Answer requests until SIGTERM or SIGINT. While the queue cannot be looked at, say so in the metrics."""
    asyncio.run(_run(factory, settings, host, port))


async def _run(factory: ClientFactory, settings: MonitorSettings, host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    monitor = Monitor(factory, settings)
    async with serve_http(QueuePages(monitor).answer, host, port) as (address, bound):
        shown = f"[{address}]" if ":" in address else address
        LOGGER.info("metrics of queue %r at http://%s:%s/metrics", factory.schema, shown, bound)
        await stop.wait()
        LOGGER.info("stopped")
    await monitor.close()
