"""Places in a pool. The blocking twin is written by hand too: there a wait has a time limit of its own."""

import asyncio


class AsyncPlaces:
    """A number of places; callers that wait for one are served in turn."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)

    async def take(self, for_s: float) -> bool:
        """Take one, waiting for it at most so long; return whether there was one."""
        try:
            async with asyncio.timeout(for_s):
                return await self._free.acquire()
        except TimeoutError:
            return False

    def give_back(self) -> None:
        self._free.release()
