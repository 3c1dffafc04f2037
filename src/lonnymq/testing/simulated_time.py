"""How time passes in a test run: crons tick, and where nothing is due it leaps to what is."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lonnymq.tasks.cron import tick
from lonnymq.testing import clock as clocks

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue


class Standing:
    """Without a clock: only what is due now is worked, and no cron ticks."""

    async def tick(self) -> None:
        pass

    async def leap(self) -> bool:
        return False


class Passing:
    """With a clock: crons tick, and time leaps up to `until` if there is one."""

    def __init__(self, queue: "AsyncQueue", handler: Any, until: datetime | None) -> None:
        self._queue = queue
        crons = getattr(handler, "crons", None)
        # As in a worker: one without crons of its own leaves those of others alone.
        self._is_ticking = crons is not None
        self._crons = tuple(crons or ())
        self._names = [cron.name for cron in self._crons]
        self._until = until

    async def declare(self) -> None:
        """Say which crons there are; the first time, they begin now."""
        for cron in self._crons:
            await self._queue.cron.declare(cron)

    async def tick(self) -> None:
        """Enqueue what crons have due."""
        if self._is_ticking:
            while (await self._queue.cron.due(self._names)).crons:
                await tick(self._queue, self._names)

    async def leap(self) -> bool:
        """Move the clock to what is due next; return whether that is so before the end."""
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


async def passing(queue: "AsyncQueue", handler: Any, until: datetime | timedelta | None) -> Passing:
    if isinstance(until, timedelta):
        until = await queue.caller.perform(clocks.now()) + until
    one = Passing(queue, handler, until)
    await one.declare()
    return one
