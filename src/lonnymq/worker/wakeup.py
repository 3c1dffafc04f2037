"""Tasks of one event loop that wait for something to change; no lock is needed."""

import asyncio
import contextlib
from collections import deque


class Wakeup:
    """One task waits, others wake it. Without a waiting task `wake()` has no effect: check before waiting."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None

    async def wait(self, for_s: float | None = None) -> None:
        """Wait to be woken, or for this time."""
        loop = asyncio.get_running_loop()
        self._future = loop.create_future()
        timer = None if for_s is None else loop.call_later(for_s, set_done, self._future)
        try:
            await self._future
        finally:
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        future, self._future = self._future, None
        if future is not None:
            set_done(future)


class WakeupQueue:
    """Many tasks wait, and those that have waited longest are woken first."""

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except asyncio.CancelledError:
            # A wake-up of this future would reach no task.
            with contextlib.suppress(ValueError):
                self._futures.remove(future)
            raise

    def wake(self, count: int) -> None:
        """Wake up to this many tasks."""
        for _ in range(min(count, len(self._futures))):
            set_done(self._futures.popleft())


def set_done(future: "asyncio.Future[None]") -> None:
    """Complete a future that may be done or cancelled already."""
    if not future.done():
        future.set_result(None)
