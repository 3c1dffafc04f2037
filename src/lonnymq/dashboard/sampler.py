"""Looks at the queue every few seconds while somebody looks at the dashboard: once for all of them."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

from lonnymq.client.aio import AsyncQueue
from lonnymq.dashboard.history import History, per_second
from lonnymq.dashboard.settings import DashboardSettings
from lonnymq.model import ChannelStatus, QueuePulse, WorkerState

# After this long without a visitor, it stops.
IDLE_S = 30.0
CHANNELS = 10
# After a reading, the server rests for this many times as long as it took, but no longer than this: while
# vacuum cannot clean up, a reading may take a second.
REST = 4
MAX_REST_S = 20.0
# What failed is tried again after as long as it took, but no later than this.
MAX_ERROR_S = 5.0
# Processes report every five seconds.
WORKERS_S = 5.0
MAX_WORKERS = 500


@dataclass(frozen=True)
class Slots:
    """What the registered processes of workers can do at a time; `is_complete`: these are all of them."""

    processes: int
    slots: int
    busy: int
    is_complete: bool


@dataclass(frozen=True)
class Sample:
    """A reading of the queue: figures, workers, and the channels that wait longest or have most messages."""

    pulse: QueuePulse
    slots: Slots
    overdue: list[ChannelStatus]
    busiest: list[ChannelStatus]


@dataclass(frozen=True)
class Rates:
    """Messages per second during the last minute."""

    created: float
    released: float


class Sampler:
    """The latest reading, and those of the last hour."""

    def __init__(self, queue: AsyncQueue, settings: DashboardSettings) -> None:
        self.history = History()
        self._queue = queue
        self._interval_s = settings.sample_s
        # Less than a visitor waits.
        self._timeout_s = settings.statement_timeout_s + 1.0
        self._lock = asyncio.Lock()
        self._latest: Sample | None = None
        self._error: Exception | None = None
        self._sampled_at = self._next_at = float("-inf")
        self._looked_at = float("-inf")
        self._slots: Slots | None = None
        self._slots_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def look(self) -> Sample:
        """Return a reading, and keep sampling for a while.

        It is at most one interval old, or if the database is slow, four times as old as it took to read.
        """
        self._looked_at = time.monotonic()
        sample = await self._fresh()
        if self.is_idle:
            self._task = asyncio.create_task(self._run(), name="lonnymq dashboard sampler")
        return sample

    @property
    def age_s(self) -> float:
        """How old the latest reading is."""
        return time.monotonic() - self._sampled_at

    @property
    def rates(self) -> Rates | None:
        ring = self.history.queue
        first = ring.since(timedelta(minutes=1))
        if first is None:
            return None
        last = ring.points[-1]
        return Rates(
            per_second(first.created, last.created, first.at, last.at),
            per_second(first.leased, last.leased, first.at, last.at),
        )

    @property
    def is_idle(self) -> bool:
        """Whether nobody looks, so that nothing is read."""
        return self._task is None or self._task.done()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while time.monotonic() - self._looked_at < IDLE_S:
            await asyncio.sleep(self._interval_s)
            try:
                await self._fresh()
            except Exception:  # noqa: BLE001 - a gap in the charts; the next visitor sees the error
                continue

    async def _fresh(self) -> Sample:
        async with self._lock:
            began_at = time.monotonic()
            if began_at >= self._next_at:
                self._latest = self._error = None
                try:
                    # A connection that is silently dead would never answer, and nobody else could look.
                    async with asyncio.timeout(self._timeout_s):
                        self._latest = await self._take()
                except Exception as error:  # noqa: BLE001 - raised below
                    if isinstance(error, TimeoutError):
                        await self._queue.caller.source.renew()
                    # Visitors who come meanwhile do not ask a server again that has just failed.
                    self._error = error
                self._sampled_at = time.monotonic()
                took_s = self._sampled_at - began_at
                rest_s = min(MAX_REST_S, REST * took_s) if self._latest else min(MAX_ERROR_S, took_s)
                # A little less than the interval, so that the task and its own interval agree.
                self._next_at = self._sampled_at + max(self._interval_s * 0.9, rest_s)
            if self._latest is None:
                raise self._error or TimeoutError
            return self._latest

    async def _take(self) -> Sample:
        pulse = await self._queue.pulse()
        overdue = await self._queue.overdue(limit=CHANNELS)
        busiest = await self._queue.busiest(limit=CHANNELS)
        self.history.add(pulse, [*busiest, *overdue])
        return Sample(pulse, await self._count_slots(), overdue, busiest)

    async def _count_slots(self) -> Slots:
        if self._slots is None or time.monotonic() - self._slots_at > WORKERS_S:
            found = await self._queue.workers(limit=MAX_WORKERS)
            working = [one for one in found if one.state is WorkerState.WORKING]
            self._slots = Slots(
                len(working),
                sum(one.slots for one in working),
                sum(one.busy for one in working),
                len(found) < MAX_WORKERS,
            )
            self._slots_at = time.monotonic()
        return self._slots
