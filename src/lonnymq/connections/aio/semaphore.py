"""A semaphore whose wait has a time limit. sync/semaphore.py is by hand too: threading has such a limit."""

import asyncio


class AsyncSemaphore:
    """Callers that wait are served in turn."""

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
