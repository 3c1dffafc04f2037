"""How many bytes of large contents and states the process holds in memory."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from lonnymq.worker.attempt import Attempt

# How long a content may wait for memory before another worker gets it.
MAX_WAIT_S = 10.0


class MemoryBudget:
    """Counts bytes per attempt until the queue has answered its acknowledgement.

    The first content that does not fit waits until it does. Meanwhile no other content gets memory: smaller
    ones would always take its place.
    """

    def __init__(self, max_bytes: int, give_back: "Callable[[list[Attempt], str], None]") -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        self.waiting: Attempt | None = None
        self._give_back = give_back
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_exceeded(self) -> bool:
        """Whether more is reserved than allowed: states count too, and are never refused."""
        return self.reserved_bytes > self.max_bytes

    @property
    def shortage(self) -> str:
        """Say why contents are given back."""
        return f"contents take {self.reserved_bytes} bytes, max_bytes is {self.max_bytes}"

    def try_reserve(self, attempt: "Attempt") -> bool:
        """Reserve memory for a content if there is enough and no other content waits for it."""
        if self.waiting is not None or self.reserved_bytes + attempt.unread_bytes > self.max_bytes:
            return False
        self.reserve(attempt, attempt.unread_bytes)
        return True

    def try_wait(self, attempt: "Attempt") -> bool:
        """Keep a message until there is memory for its content; return False if another one waits."""
        if self.waiting is not None:
            return False
        self.waiting = attempt
        self._timer = asyncio.get_running_loop().call_later(MAX_WAIT_S, self._stop_waiting)
        return True

    def reserve(self, attempt: "Attempt", size: int) -> None:
        """Count bytes that the attempt holds in memory."""
        attempt.reserved_bytes += size
        self.reserved_bytes += size

    def release(self, attempt: "Attempt") -> "Attempt | None":
        """Free all bytes of the attempt; return the message that has waited for them, if there is one."""
        if attempt.reserved_bytes:
            self.reserved_bytes -= attempt.reserved_bytes
            attempt.reserved_bytes = 0
        waiting = self.waiting
        if waiting is None:
            return None
        if waiting is not attempt:
            if self.reserved_bytes + waiting.unread_bytes > self.max_bytes:
                return None
            self.reserve(waiting, waiting.unread_bytes)
        self.withdraw()
        return None if waiting is attempt else waiting

    def withdraw(self) -> "list[Attempt]":
        """Take out the message that waits, if there is one."""
        attempts = [] if self.waiting is None else [self.waiting]
        self.waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return attempts

    def _stop_waiting(self) -> None:
        self._give_back(self.withdraw(), self.shortage)
