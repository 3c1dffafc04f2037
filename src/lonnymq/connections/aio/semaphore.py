"""A semaphore whose acquire() has a timeout. sync/semaphore.py is written by hand, over threading's own."""

import asyncio


class AsyncSemaphore:
    """Waiting callers are served in order."""

    def __init__(self, count: int) -> None:
        self._semaphore = asyncio.Semaphore(count)

    async def acquire(self, timeout_s: float) -> bool:
        """Return whether the semaphore was acquired in time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._semaphore.acquire()
        except TimeoutError:
            return False

    def release(self) -> None:
        """Let the next caller in."""
        self._semaphore.release()
