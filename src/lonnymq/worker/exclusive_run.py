"""Runs one message alone in its process: waits until the process is empty, and keeps it empty."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from lonnymq.worker.prefetch import START_WITHIN_S

Message = TypeVar("Message")

# How long nothing else may start while running handlers finish, at first. If they take longer, the message
# goes back for another worker, ordinary messages have this process for twice as long, and the next drain is
# twice as long.
FIRST_DRAIN_S = START_WITHIN_S
MAX_DRAIN_S = 160.0
# Drains are short again if no message had to run alone for this long.
FORGET_AFTER_S = 60.0
# After an exclusive run, the longest time in which only ordinary messages start.
MAX_BREAK_S = 60.0


class ExclusiveRun(Generic[Message]):
    """Holds at most one message. While `is_active`, nothing else is fetched or started."""

    def __init__(self, changed: Callable[[], None], give_back: Callable[[Message, str], None]) -> None:
        self._changed = changed
        self._give_back = give_back
        self._waiting: Message | None = None
        # The message that runs, until the queue has answered its acknowledgement.
        self.running: Message | None = None
        self._drain_s = FIRST_DRAIN_S
        self._held_at = 0.0
        self._break_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a message waits for the process to be empty."""
        return self._waiting is not None

    @property
    def is_active(self) -> bool:
        """Whether the process is draining for the message, or the message runs."""
        return self._waiting is not None or self.running is not None

    def try_hold(self, message: Message) -> bool:
        """Keep a message until the process is empty; return whether that is possible.

        It is not while another message is held, nor right after one: then ordinary messages have the process
        for as long as that one had it.
        """
        now = time.monotonic()
        if self.is_active or now < self._break_until:
            return False
        if now > self._break_until + FORGET_AFTER_S:
            self._drain_s = FIRST_DRAIN_S
        self._waiting = message
        self._held_at = now
        self._timer = asyncio.get_running_loop().call_later(self._drain_s, self._stop_draining)
        return True

    def start(self) -> Message:
        """Return the message, which now runs until `finish()`."""
        message = self._waiting
        assert message is not None
        self._release()
        self._drain_s = FIRST_DRAIN_S
        self.running = message
        return message

    def finish(self) -> None:
        """End the run, once the queue knows: until then the lease says that nothing else runs here."""
        self.running = None
        now = time.monotonic()
        self._break_until = now + min(now - self._held_at, MAX_BREAK_S)
        self._changed()

    def discard(self, message: Message) -> None:
        """Stop waiting for a message whose lease was lost."""
        if self._waiting is message:
            self._release()
            self._changed()

    def withdraw(self) -> list[Message]:
        """Take out the message that has not started, if there is one."""
        messages = [] if self._waiting is None else [self._waiting]
        self._release()
        return messages

    def _stop_draining(self) -> None:
        """Let other messages start, because running handlers take longer than the drain."""
        drained_s = self._drain_s
        self._drain_s = min(2 * drained_s, MAX_DRAIN_S)
        self._break_until = time.monotonic() + 2 * drained_s
        for message in self.withdraw():
            self._give_back(
                message, f"a message must run alone, and this process was not empty for {drained_s:g} s"
            )
        self._changed()

    def _release(self) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
