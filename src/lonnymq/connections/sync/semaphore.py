"""The blocking twin of aio/places.py, by hand."""

import threading


class Places:
    """A number of places; callers wait for a free one."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)

    def take(self, for_s: float) -> bool:
        """Take one, waiting for it at most that long; return whether there was one."""
        return self._free.acquire(timeout=max(0.0, for_s))

    def give_back(self) -> None:
        self._free.release()
