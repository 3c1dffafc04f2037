"""How many bytes of large contents and states the process holds in memory."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt

# A message whose content did not fit is expected to be delivered again within this time.
REFUSED_FIRST_S = 10.0


class MemoryBudget:
    """Counts bytes per attempt until the queue has answered its acknowledgement."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        # The first message whose content did not fit, and until when no other message may take its place.
        self._refused_first: tuple[int | None, float] = (None, 0.0)

    @property
    def is_exceeded(self) -> bool:
        """Whether more is reserved than allowed: states count too, and are never refused."""
        return self.reserved_bytes > self.max_bytes

    def has_room_for(self, attempt: "Attempt") -> bool:
        """Whether the content fits; smaller contents wait for the first one that did not."""
        now = time.monotonic()
        first, until = self._refused_first
        if first not in (None, attempt.message.id) and now < until:
            return False
        if self.reserved_bytes + attempt.unread_bytes <= self.max_bytes:
            self._refused_first = (None, 0.0)
            return True
        self._refused_first = (attempt.message.id, now + REFUSED_FIRST_S)
        return False

    def reserve(self, attempt: "Attempt", size: int) -> None:
        """Count bytes that the attempt holds in memory."""
        attempt.reserved_bytes += size
        self.reserved_bytes += size

    def release(self, attempt: "Attempt") -> None:
        """Free all bytes of the attempt."""
        self.reserved_bytes -= attempt.reserved_bytes
        attempt.reserved_bytes = 0
