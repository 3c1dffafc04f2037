"""The pauses between attempts at something that may fail for a while: a connection, a lock, a process."""

import random
import time
from collections.abc import Iterator


class Backoff:
    """Each pause is twice the previous one, up to a maximum; jitter spreads out simultaneous failures."""

    def __init__(self, *, first_s: float = 0.05, max_s: float = 2.0) -> None:
        self._first_s = self._pause_s = min(first_s, max_s)
        self._max_s = max_s

    def next_s(self) -> float:
        """Return the next pause in seconds, of which up to half is taken off at random."""
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, self._max_s)
        return pause_s * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Start with the first pause again, because an attempt succeeded."""
        self._pause_s = self._first_s

    def pauses(self, *, for_s: float) -> Iterator[float]:
        """Yield the pause after each failed attempt, at least one, until `for_s` seconds have passed."""
        deadline = time.monotonic() + for_s
        yield self.next_s()
        while time.monotonic() < deadline:
            yield self.next_s()
