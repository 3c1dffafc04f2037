"""Adds up what the processes of a supervisor have counted, each of which sends its figures through a pipe."""

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from lonnymq.worker.metrics import WorkerFigures, WorkerMetrics
from lonnymq.worker.shutdown import SIGNALS

SEND_EVERY_S = 1.0
# What a process does that has not sent anything for this long, nobody knows.
SILENT_S = 5.0
MAX_BYTES = 4 * 1024 * 1024


class Fleet:
    """The figures of all processes; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the pipe: the last figures, and when they arrived.
        self._running: dict[Connection, tuple[WorkerFigures, float]] = {}
        # No counter goes back when a process ends.
        self._ended = WorkerFigures()

    def figures(self) -> WorkerFigures:
        """Return the figures of all processes together."""
        now = time.monotonic()
        with self._lock:
            running, total = list(self._running.values()), self._ended
        for figures, arrived_at in running:
            total = total.plus(figures if now - arrived_at < SILENT_S else figures.ended())
        return total

    def connect(self) -> Connection:
        """Return the end of a new pipe for a process; figures are read until it is closed."""
        ours, theirs = multiprocessing.Pipe(duplex=False)
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
        # It ends with EOFError when the process does. Anything else that it sends is not from us.
        with pipe, suppress(OSError, EOFError, ValueError, TypeError):
            while True:
                figures = WorkerFigures.from_bytes(pipe.recv_bytes(MAX_BYTES))
                with self._lock:
                    self._running[pipe] = figures, time.monotonic()
        with self._lock:
            if pipe in self._running:
                self._ended = self._ended.plus(self._running.pop(pipe)[0].ended())


@contextmanager
def send_figures(metrics: WorkerMetrics, pipe: Connection) -> Iterator[None]:
    """Send a process's figures to its supervisor every second, and once more at the end."""
    is_over = threading.Event()

    def send() -> None:
        with pipe, suppress(OSError):
            while not is_over.wait(SEND_EVERY_S):
                pipe.send_bytes(metrics.figures().to_bytes())
            pipe.send_bytes(metrics.figures().to_bytes())

    # A thread, because a supervisor that is stopped does not read, and handlers must run nevertheless.
    sender = threading.Thread(target=send, name="lonnymq-figures", daemon=True)
    sender.start()
    try:
        yield
    finally:
        is_over.set()
        sender.join(SEND_EVERY_S)
