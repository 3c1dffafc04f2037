"""Stops a worker: the first signal lets running handlers finish, the second interrupts them.

A drain is like the first signal without its time limit.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

from lonnymq.worker.settings import ExitCode

LOGGER = logging.getLogger("lonnymq.worker")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# How long interrupted handlers may clean up.
GRACE_S = 1.0
# How long sending pending acknowledgements may take after that.
FLUSH_S = 3.0
# A process that still runs after both is ended by force.
FORCED_EXIT_S = GRACE_S + FLUSH_S + 1.0


class Shutdown:
    """Three events, each of which implies those before it; any thread or signal handler may set them."""

    def __init__(self) -> None:
        self._reset()
        # Called when somebody asks this process to drain.
        self.on_drain: Callable[[], object] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def bind_to_loop(self) -> Iterator[None]:
        """Belong to the running loop; at the end of the block both events are reset."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None
            self._reset()

    def drain(self) -> None:
        """Take no more messages, let running handlers finish, however long they take, and stop."""
        self.on_drain()
        self._set(self.draining)

    def request(self) -> None:
        """Let running handlers finish in time, and stop."""
        self._set(self.draining)
        self._set(self.requested)

    def request_immediate(self) -> None:
        """Interrupt running handlers, and stop."""
        self._set(self.immediate)
        self.request()

    def _reset(self) -> None:
        self.draining, self.requested, self.immediate = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def _set(self, event: asyncio.Event) -> None:
        loop = self._loop
        if loop is None:
            event.set()
        else:
            loop.call_soon_threadsafe(event.set)


class HardDeadline:
    """Ends a process that does not end by itself because a handler blocks its event loop."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for timer in self._timers:
            timer.cancel()

    def set(self, seconds: float) -> None:
        """End the process after this time; its messages are delivered again when their leases expire."""
        timer = threading.Timer(seconds, _force_exit)
        timer.daemon = True
        self._timers.append(timer)
        timer.start()


@contextmanager
def stop_on_signals(shutdown: Shutdown, shutdown_s: float) -> Iterator[None]:
    """React to SIGTERM and SIGINT; outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = 0
    deadline = HardDeadline()

    def handle_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            shutdown.request()
            deadline.set(shutdown_s + FORCED_EXIT_S)
        else:
            shutdown.request_immediate()
            deadline.set(FORCED_EXIT_S)

    before = {number: signal.signal(number, handle_signal) for number in SIGNALS}
    try:
        with deadline:
            yield
    finally:
        for number in SIGNALS:
            signal.signal(number, before[number])


def _force_exit() -> None:
    LOGGER.error(
        "ended by force: a handler or a lifespan does not let the process end; its messages are delivered"
        " again when their leases expire"
    )
    exit_now(ExitCode.INTERRUPTED)


def exit_now(code: int) -> None:
    """End the process without waiting for tasks and threads that do not end."""
    logging.shutdown()
    os._exit(code)
