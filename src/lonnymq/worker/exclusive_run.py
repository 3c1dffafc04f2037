"""Runs one message alone in its process: waits until the process is empty, and keeps it empty."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Message = TypeVar("Message")

# How long nothing else may start while running handlers finish. If they take longer, other messages start
# again for twice as long, and the next drain is twice as long.
DRAIN_S = 5.0
# After an exclusive run, the longest time in which only ordinary messages start.
MAX_BREAK_S = 60.0
# A process that never becomes empty gives the message to another worker after this time.
MAX_WAIT_S = 600.0


class ExclusiveRun(Generic[Message]):
    """Holds at most one message. While `is_active`, nothing else is fetched or started."""

    def __init__(self, changed: Callable[[], None], give_back: Callable[[Message, str], None]) -> None:
        self._changed = changed
        self._give_back = give_back
        self._waiting: Message | None = None
        # The message that runs, until the queue has answered its acknowledgement.
        self.running: Message | None = None
        self._is_draining = False
        self._waited_s = 0.0
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
        return self._is_draining or self.running is not None

    def try_hold(self, message: Message) -> bool:
        """Keep a message until the process is empty; return whether that is possible.

        It is not while another message is held, nor right after one: then ordinary messages have the process
        for as long as that one had it.
        """
        now = time.monotonic()
        if self._waiting is not None or self.running is not None or now < self._break_until:
            return False
        self._waiting = message
        self._held_at = now
        self._waited_s = 0.0
        self._drain(DRAIN_S)
        return True

    def start(self) -> Message:
        """Return the message, which now runs until `finish()`."""
        message = self._waiting
        assert message is not None
        self._release()
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

    def _drain(self, for_s: float) -> None:
        self._is_draining = True
        self._timer = asyncio.get_running_loop().call_later(for_s, self._stop_draining, for_s)

    def _stop_draining(self, drained_s: float) -> None:
        """Let other messages start for a while, because running handlers take longer than the drain."""
        self._is_draining = False
        self._waited_s += 3 * drained_s
        if self._waited_s > MAX_WAIT_S:
            for message in self.withdraw():
                self._give_back(message, f"this process was not empty for {MAX_WAIT_S:g} s")
        else:
            self._timer = asyncio.get_running_loop().call_later(2 * drained_s, self._drain, 2 * drained_s)
        self._changed()

    def _release(self) -> None:
        self._waiting = None
        self._is_draining = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
