"""What an exporter answers to which path."""

import json
import time
from collections.abc import Mapping

from lonnymq.telemetry.http_server import Page
from lonnymq.telemetry.monitor import Look, Monitor
from lonnymq.telemetry.queue_metrics import encode, queue_metrics

JSON = "application/json"
UNKNOWN = "the queue cannot be looked at; the exporter's log says why"


class QueuePages:
    """/metrics for Prometheus, /demand for autoscalers, /livez for probes."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    async def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Page:
        """Answer a request; the names of headers are in lower case."""
        if method not in ("GET", "HEAD"):
            return Page(405, b"only GET and HEAD\n", headers={"allow": "GET, HEAD"})
        if path == "/metrics":
            look = await self._monitor.look()
            body, content_type = encode(queue_metrics(look, time.monotonic()), headers.get("accept", ""))
            return Page(200, body, content_type)
        if path == "/demand":
            return demand(await self._monitor.look())
        if path == "/livez":
            return Page(200, b"ok\n")
        if path == "/":
            return Page(200, b"lonnymq exporter: /metrics /demand /livez\n")
        return Page(404, b"not found; there are /metrics, /demand and /livez\n")


def demand(look: Look) -> Page:
    """Return how much there is for workers to do now, or 503 if nobody knows."""
    if look.reading is None:
        # Whoever can reach this port need not know the database's host and user, which the error may name.
        return Page(503, json.dumps({"error": UNKNOWN}).encode(), JSON)
    pulse = look.reading.pulse
    due_crons = sum(overdue_s > 0 for overdue_s in look.reading.crons.values())
    figures = {
        # Workers that are busy are needed too, and a cron that is due needs one.
        "work": pulse.demand + pulse.leased + due_crons,
        "demand": pulse.demand,
        "leased": pulse.leased,
        "due_crons": due_crons,
        "due_channels": pulse.due_channels,
        "is_complete": pulse.is_due_complete,
        "turn_lag_s": round(pulse.turn_lag_s, 3),
    }
    return Page(200, json.dumps(figures).encode(), JSON)
