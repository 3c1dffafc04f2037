"""The blocking twin of aio/places.py, by hand."""

import threading


class Places:
    """So many may be taken at a time."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)

    def take(self, for_s: float) -> bool:
        """Take one, waiting for it at most so long; return whether there was one."""
        return self._free.acquire(timeout=max(0.0, for_s))

    def give_back(self) -> None:
        self._free.release()
