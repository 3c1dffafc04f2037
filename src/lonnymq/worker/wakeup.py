"""Waiting for something to change, without a lock: all of it happens on one loop."""

import asyncio


class Wakeup:
    """One task waits, others wake it. A wake-up while nobody waits is forgotten: look before you wait."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        self._future = asyncio.get_running_loop().create_future()
        await self._future

    def wake(self) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(None)
