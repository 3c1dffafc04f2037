"""How a worker is asked to stop: once to finish what runs, twice to drop it."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

from lonnymq.worker.settings import ExitCode

LOGGER = logging.getLogger("lonnymq.worker")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# How long interrupted handlers may clean up, and then the last words to the queue may take.
GRACE_S = 1.0
FLUSH_S = 3.0
# After all that, a process that still runs does not listen.
FORCED_EXIT_S = GRACE_S + FLUSH_S + 1.0


class Shutdown:
    """Two events, of which the second implies the first; asked for from any thread or signal handler."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.immediate = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def bind_to_loop(self) -> Iterator[None]:
        """Belong to the running loop; afterwards nothing is asked."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None
            self.requested, self.immediate = asyncio.Event(), asyncio.Event()

    def request(self) -> None:
        """Finish what runs, and stop."""
        self._set(self.requested)

    def request_immediate(self) -> None:
        """Drop what runs, and stop."""
        self._set(self.immediate)
        self._set(self.requested)

    def _set(self, event: asyncio.Event) -> None:
        loop = self._loop
        if loop is None:
            event.set()
        else:
            loop.call_soon_threadsafe(event.set)


class HardDeadline:
    """The end of a process that does not get to its end: a handler that blocks the loop blocks that too."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for timer in self._timers:
            timer.cancel()

    def end_process_in(self, seconds: float) -> None:
        """End the process then, if it is still here; what it holds comes again when its leases end."""
        timer = threading.Timer(seconds, _force_exit)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()


@contextmanager
def stop_on_signals(shutdown: Shutdown, shutdown_s: float) -> Iterator[None]:
    """Stop at a first SIGTERM or SIGINT, drop everything at a second; outside the main thread, neither."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = 0
    deadline = HardDeadline()

    def react(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            shutdown.request()
            deadline.end_process_in(shutdown_s + FORCED_EXIT_S)
        else:
            shutdown.request_immediate()
            deadline.end_process_in(FORCED_EXIT_S)

    before = {one: signal.signal(one, react) for one in SIGNALS}
    try:
        with deadline:
            yield
    finally:
        for one in SIGNALS:
            signal.signal(one, before[one])


def _force_exit() -> None:
    LOGGER.error(
        "ended by force: a handler does not let the process end; its messages are delivered again when their"
        " leases expire"
    )
    exit_now(ExitCode.INTERRUPTED)


def exit_now(code: int) -> None:
    """Without waiting for tasks and threads that do not listen."""
    logging.shutdown()
    os._exit(code)
