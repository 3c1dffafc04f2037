"""One message that must run alone in its process, and when the process is emptied for it."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Held = TypeVar("Held")

# How long nothing else may start, at first. If handlers run longer than that, other messages are worked again
# for twice as long, and the next try is twice as long.
DRAIN_S = 5.0
# How long ordinary messages are worked between two that ran alone, at the most.
MAX_BREAK_S = 60.0
# A process that is never free lets another one have the message.
MAX_WAIT_S = 600.0


class ExclusiveRun(Generic[Held]):
    """Holds at most one message. While `is_active`, nothing else is fetched or started."""

    def __init__(self, changed: Callable[[], None], give_back: Callable[[Held, str], None]) -> None:
        self._changed = changed
        self._give_back = give_back
        self._held: Held | None = None
        # The one that runs, until the queue has answered for it.
        self.running: Held | None = None
        self._is_draining = False
        self._waited_s = 0.0
        self._held_at = 0.0
        self._break_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a message waits for the process to be empty."""
        return self._held is not None

    @property
    def is_active(self) -> bool:
        """Whether the process is being emptied for the message, or it runs."""
        return self._is_draining or self.running is not None

    def try_hold(self, message: Held) -> bool:
        """Keep a message until the process is empty; return whether that can be.

        Not beside another one, and not right after one: others are worked for as long as that one took.
        """
        now = time.monotonic()
        if self._held is not None or self.running is not None or now < self._break_until:
            return False
        self._held = message
        self._held_at = now
        self._waited_s = 0.0
        self._drain(DRAIN_S)
        return True

    def start(self) -> Held:
        """Take the message; it runs until `finish()`."""
        message = self._held
        assert message is not None
        self._release()
        self.running = message
        return message

    def finish(self) -> None:
        """It has ended, and the queue knows: until then its lease says that nothing runs beside it."""
        self.running = None
        now = time.monotonic()
        self._break_until = now + min(now - self._held_at, MAX_BREAK_S)
        self._changed()

    def discard(self, message: Held) -> None:
        """Its lease was lost: there is nothing to wait for."""
        if self._held is message:
            self._release()
            self._changed()

    def withdraw(self) -> list[Held]:
        """Take out what has not begun."""
        messages = [] if self._held is None else [self._held]
        self._release()
        return messages

    def _drain(self, for_s: float) -> None:
        self._is_draining = True
        self._timer = asyncio.get_running_loop().call_later(for_s, self._resume, for_s)

    def _resume(self, drained_s: float) -> None:
        """Handlers take their time; let others be worked beside them for a while."""
        self._is_draining = False
        self._waited_s += 3 * drained_s
        if self._waited_s > MAX_WAIT_S:
            for message in self.withdraw():
                self._give_back(message, f"this process was not empty for {MAX_WAIT_S:g} s")
        else:
            self._timer = asyncio.get_running_loop().call_later(2 * drained_s, self._drain, 2 * drained_s)
        self._changed()

    def _release(self) -> None:
        self._held = None
        self._is_draining = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
