"""A semaphore whose acquire() has a timeout, like aio/semaphore.py; written by hand."""

import threading


class Semaphore:
    """Waiting callers are served in any order."""

    def __init__(self, count: int) -> None:
        self._semaphore = threading.Semaphore(count)

    def acquire(self, timeout_s: float) -> bool:
        """Return whether the semaphore was acquired in time."""
        return self._semaphore.acquire(timeout=max(0.0, timeout_s))

    def release(self) -> None:
        """Let the next caller in."""
        self._semaphore.release()
