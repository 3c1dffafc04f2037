"""Exact counts, taken in the background while somebody wants to see them."""

import asyncio
import logging

from lonnymq.client.aio import AsyncQueue
from lonnymq.dashboard.settings import DashboardSettings
from lonnymq.model import ExactCounts

logger = logging.getLogger("lonnymq.dashboard")


class Counter:
    """Asks the queue for exact counts, one call at a time; the queue itself takes them rarely."""

    def __init__(self, queue: AsyncQueue, settings: DashboardSettings) -> None:
        self._queue = queue
        self._timeout_s = settings.statement_timeout_s
        self._answer_s = settings.answer_s
        self._task: asyncio.Task[None] | None = None

    async def look(self) -> ExactCounts | None:
        """Return the last counts at once, and have new ones taken if that is due."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._count(), name="lonnymq dashboard count")
        return await self._queue.count(may_count=False, timeout_s=self._timeout_s)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _count(self) -> None:
        try:
            async with asyncio.timeout(self._answer_s):
                await self._queue.count(timeout_s=self._timeout_s)
        except Exception:
            logger.debug("no exact counts", exc_info=True)
