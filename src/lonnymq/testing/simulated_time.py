"""Time in a test run: with a clock, crons tick, and time skips to what is due next."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lonnymq.tasks.ticker import tick
from lonnymq.testing import clock as clocks

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue


class RealTime:
    """Without a clock: only what is due now is processed, and no cron ticks."""

    async def tick(self) -> None:
        pass

    async def skip_ahead(self) -> bool:
        return False


class SimulatedTime:
    """With a clock: crons tick, and if `until` is given, time skips ahead up to there."""

    def __init__(self, queue: "AsyncQueue", handler: Any, until: datetime | None) -> None:
        self._queue = queue
        crons = getattr(handler, "crons", None)
        # As in a worker, a handler without crons does not tick the crons of others.
        self._is_ticking = crons is not None
        self._crons = tuple(crons or ())
        self._names = [cron.name for cron in self._crons]
        self._until = until

    async def declare(self) -> None:
        """Declare the crons; new ones start now."""
        for cron in self._crons:
            await self._queue.cron.declare(cron)

    async def tick(self) -> None:
        """Enqueue the messages of crons that are due."""
        if self._is_ticking:
            while (await self._queue.cron.due(self._names)).crons:
                await tick(self._queue, self._names)

    async def skip_ahead(self) -> bool:
        """Move the clock to what is due next, but not past the end; return whether anything is due."""
        if self._until is None:
            return False
        perform = self._queue.caller.perform
        present = await perform(clocks.now())
        due_at = min(filter(None, (await perform(clocks.due()), await self._tick_at(present))), default=None)
        is_due = due_at is not None and due_at <= self._until
        target = due_at if due_at is not None and is_due else self._until
        await perform(clocks.advance(max(target - present, timedelta(0))))
        return is_due

    async def _tick_at(self, present: datetime) -> datetime | None:
        if not self._is_ticking:
            return None
        wait_ms = (await self._queue.cron.due(self._names)).wait_ms
        return None if wait_ms is None else present + timedelta(milliseconds=wait_ms)


async def simulate_time(
    queue: "AsyncQueue", handler: Any, until: datetime | timedelta | None
) -> SimulatedTime:
    if isinstance(until, timedelta):
        until = await queue.caller.perform(clocks.now()) + until
    time = SimulatedTime(queue, handler, until)
    await time.declare()
    return time
