"""Messages whose content was too large for the reply of the dequeue and is read afterwards."""

import time
from collections import deque
from typing import TYPE_CHECKING

from lonnymq.worker.wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Callable

    from lonnymq.worker.attempt import Attempt

# Contents are read in batches of up to this many bytes; a larger content is read by itself.
BATCH_BYTES = 1024 * 1024


class UnreadContents:
    """The messages that wait to be read, and those that are being read."""

    def __init__(self) -> None:
        self.waiting: deque[Attempt] = deque()
        self._being_read: list[Attempt] = []
        self._reading_since = 0.0
        self._added = Wakeup()

    @property
    def count(self) -> int:
        return len(self.waiting) + len(self._being_read)

    def add(self, attempt: "Attempt") -> None:
        self.waiting.append(attempt)
        self._added.wake()

    async def next_batch(self) -> "list[Attempt]":
        """Wait for messages to read, and return a batch of bounded size."""
        while not self.waiting:
            await self._added.wait()
        batch = self._being_read
        self._reading_since = time.monotonic()
        size = 0
        while self.waiting and (not batch or size + self.waiting[0].unread_bytes <= BATCH_BYTES):
            size += self.waiting[0].unread_bytes
            batch.append(self.waiting.popleft())
        return batch

    def end_batch(self) -> "tuple[list[Attempt], float]":
        """Return the batch that was read, and for how many seconds it was."""
        batch, self._being_read = self._being_read, []
        return batch, time.monotonic() - self._reading_since

    def take(self, is_wanted: "Callable[[Attempt], bool]") -> "list[Attempt]":
        """Take out some messages; what is read of them is ignored."""
        taken = [attempt for attempt in (*self._being_read, *self.waiting) if is_wanted(attempt)]
        self._being_read = [attempt for attempt in self._being_read if not is_wanted(attempt)]
        self.waiting = deque(attempt for attempt in self.waiting if not is_wanted(attempt))
        return taken
