"""How a worker is asked to stop: once to finish what runs, twice to drop it."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lonnymq.worker.settings import ExitCode

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# How long interrupted handlers may clean up, and then the last words to the queue may take.
GRACE_S = 1.0
LAST_WORDS_S = 3.0
# After all that, a process that still runs does not listen.
END_S = GRACE_S + LAST_WORDS_S + 1.0


class Shutdown:
    """Two events, of which the second implies the first; asked for from any thread or signal handler."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self) -> None:
        self._loop = asyncio.get_running_loop()

    def unbind(self) -> None:
        """The loop is about to end; the next one starts unasked."""
        self._loop = None
        self.asked.clear()
        self.now.clear()

    def ask(self) -> None:
        """Finish what runs, and stop."""
        self._soon(self.asked)

    def ask_now(self) -> None:
        """Drop what runs, and stop."""
        self._soon(self.now)
        self._soon(self.asked)

    def _soon(self, event: asyncio.Event) -> None:
        if self._loop is None:
            event.set()
        else:
            self._loop.call_soon_threadsafe(event.set)


@contextmanager
def signals(shutdown: Shutdown, shutdown_s: float) -> Iterator[None]:
    """Stop at a first SIGTERM or SIGINT, drop everything at a second.

    A handler that blocks the loop also blocks all this, so the process has a last hour in any case.
    """
    received = 0

    def react(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == 1:
            shutdown.ask()
            end_after(shutdown_s + END_S)
        else:
            shutdown.ask_now()
            end_after(END_S)

    before = {one: signal.signal(one, react) for one in SIGNALS}
    try:
        yield
    finally:
        for one in SIGNALS:
            signal.signal(one, before[one])


def end_after(seconds: float) -> None:
    """End this process then, if it still runs; what it holds comes again when its leases end."""
    timer = threading.Timer(seconds, end_at_once, [ExitCode.INTERRUPTED])
    timer.daemon = True
    timer.start()


def end_at_once(code: int) -> None:
    """Without waiting for tasks and threads that do not listen."""
    logging.shutdown()
    os._exit(code)
