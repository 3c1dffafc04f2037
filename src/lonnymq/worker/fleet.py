"""The state and the counts of a supervisor's processes, which send them through pipes once a second."""

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from lonnymq.worker.health import HealthStatus, Probe, merge
from lonnymq.worker.metrics import WorkerFigures
from lonnymq.worker.shutdown import SIGNALS

SEND_EVERY_S = 1.0
# The state of a process that has not sent anything for this long is unknown.
SILENT_S = 5.0
# How long a process may take to import its program before it sends anything.
MAX_START_S = 300.0
MAX_BYTES = 4 * 1024 * 1024


@dataclass
class Member:
    """What one process has sent."""

    started_at: float = field(default_factory=time.monotonic)
    pid: int = 0
    arrived_at: float = 0.0
    sent: HealthStatus = field(default_factory=lambda: HealthStatus(not_ready="starting"))
    figures: WorkerFigures = field(default_factory=WorkerFigures)

    def silent_s(self, now: float) -> float:
        """Return for how many seconds nothing has arrived; 0 if that is not too long."""
        silent_s = now - self.arrived_at if self.arrived_at else now - self.started_at - MAX_START_S
        return silent_s if silent_s >= SILENT_S else 0.0

    def status(self, now: float) -> HealthStatus:
        if silent_s := self.silent_s(now):
            reason = f"no sign of life for {silent_s:.0f} s"
            return HealthStatus(reason, reason)
        return self.sent


class Fleet:
    """The probe of a supervisor: all its processes together; any thread may ask."""

    def __init__(self, processes: int, *, has_figures: bool) -> None:
        self.expected = processes
        self.is_stopping = False
        # Whether the processes are to count their attempts.
        self.has_figures = has_figures
        self._lock = threading.Lock()
        self._running: dict[Connection, Member] = {}
        # No counter goes back when a process ends.
        self._ended = WorkerFigures()

    def status(self) -> HealthStatus:
        """Return the status of the worst process."""
        now = time.monotonic()
        with self._lock:
            named = [
                (f"process {one.pid or 'that starts'}", one.status(now)) for one in self._running.values()
            ]
        missing = self.expected - len(named)
        if missing > 0:
            named.append((f"{missing} of {self.expected} processes", HealthStatus(not_ready="not running")))
        found = merge(named)
        # One of several that drains does not stop the service.
        return HealthStatus(
            found.not_live,
            "stopping" if self.is_stopping else found.not_ready,
            found.is_waiting,
            self.is_stopping,
        )

    def figures(self) -> WorkerFigures | None:
        """Return the figures of all processes together."""
        now = time.monotonic()
        with self._lock:
            running, total = list(self._running.values()), self._ended
        for one in running:
            total = total.plus(one.figures.ended() if one.silent_s(now) else one.figures)
        return total if self.has_figures else None

    def connect(self) -> Connection:
        """Return the end of a new pipe for a process; it is read until it is closed."""
        ours, theirs = multiprocessing.Pipe(duplex=False)
        with self._lock:
            self._running[ours] = Member()
        # A thread, because a process that stops in the middle of sending must not stop the supervisor.
        reader = threading.Thread(target=self._read, args=(ours,), name="lonnymq-fleet", daemon=True)
        # Signals are for the main thread.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            reader.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return theirs

    def _read(self, pipe: Connection) -> None:
        member = self._running[pipe]
        # It ends with EOFError when the process does. Anything else that it sends is not from us.
        with pipe, suppress(OSError, EOFError, ValueError, TypeError):
            while True:
                pid, status, figures = json.loads(pipe.recv_bytes(MAX_BYTES))
                with self._lock:
                    member.pid, member.arrived_at, member.sent = pid, time.monotonic(), HealthStatus(*status)
                    if figures is not None:
                        member.figures = WorkerFigures.from_json(figures)
        with self._lock:
            del self._running[pipe]
            self._ended = self._ended.plus(member.figures.ended())


@contextmanager
def send_reports(probe: Probe, pipe: Connection) -> Iterator[None]:
    """Tell the supervisor every second how a process is and what it has counted, and once more at the end."""
    is_over = threading.Event()

    def send() -> None:
        with pipe, suppress(OSError):
            while True:
                is_last = is_over.is_set()
                figures = probe.figures()
                sent = [os.getpid(), probe.status().values(), None if figures is None else figures.to_json()]
                pipe.send_bytes(json.dumps(sent, separators=(",", ":")).encode())
                if is_last:
                    return
                is_over.wait(SEND_EVERY_S)

    # A thread, because a supervisor that is stopped does not read, and handlers must run nevertheless.
    sender = threading.Thread(target=send, name="lonnymq-report", daemon=True)
    sender.start()
    try:
        yield
    finally:
        is_over.set()
        sender.join(SEND_EVERY_S)
