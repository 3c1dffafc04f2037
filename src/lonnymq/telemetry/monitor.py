"""Looks at a queue when asked, by calls whose cost does not depend on its size."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psycopg

from lonnymq.calls import argument
from lonnymq.calls import channel as channel_calls
from lonnymq.calls import cron as cron_calls
from lonnymq.calls import history as history_calls
from lonnymq.calls import queue as queue_calls
from lonnymq.calls import worker as worker_calls
from lonnymq.connections.aio.execution import transaction
from lonnymq.connections.settings import ClientSettings
from lonnymq.errors import InvalidArgument, LonnyError
from lonnymq.model import ChannelStatus, FleetPart, QueuePulse, TableFigures, WorkerState
from lonnymq.texts import MAX_LINE, one_line, truncate
from lonnymq.worker.client_factory import ClientFactory
from lonnymq.worker.timeouts import call_within, close_quietly

if TYPE_CHECKING:
    from lonnymq.client.aio import AsyncQueue
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.client.sync import Queue

LOGGER = logging.getLogger("lonnymq.exporter")

# One connection, which also works behind PgBouncer; a look that fails is not repeated before the next one.
CLIENT = ClientSettings(
    pool_min_size=1, pool_max_size=1, prepare_threshold=None, listen=False, retry_for_s=0.0, busy_for_s=0.0
)
MAX_CHANNELS = 100
MAX_CRONS = 1_000
MAX_READERS = 100


@dataclass(frozen=True, kw_only=True)
class MonitorSettings:
    """What to look at, and how long a look may take.

    `channels` are shown by name, and the `top` channels with the most messages, each at most 100. Demand is
    added up over `due_channels` channels that are due. A look is shared for `max_age_s`.
    """

    channels: Sequence[str] = ()
    top: int = 0
    due_channels: int = 1_000
    timeout_s: float = 5.0
    max_age_s: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.channels, str) or len(self.channels) > MAX_CHANNELS:
            raise InvalidArgument(f"channels must be a sequence of at most {MAX_CHANNELS} names")
        for name in self.channels:
            argument.channel(name)
        argument.whole("top", self.top, 0, MAX_CHANNELS)
        argument.whole("due_channels", self.due_channels, 1, 10_000)
        argument.seconds_between("timeout_s", self.timeout_s, 0.1, 60)
        argument.seconds_between("max_age_s", self.max_age_s, 0, 60)


@dataclass(frozen=True)
class Reading:
    """What one look has found."""

    pulse: QueuePulse
    fleet: Mapping[WorkerState, FleetPart]
    tables: Sequence[TableFigures]
    crons: Mapping[str, float]
    reader_lags: Mapping[str, float]
    # None: it was asked for by its name, and does not exist.
    channels: Mapping[str, ChannelStatus | None]


@dataclass(frozen=True)
class Look:
    """One look at the queue: what it found, or why it failed. `ended_at` is by the monotonic clock."""

    ended_at: float
    took_s: float
    reading: Reading | None = None
    error: str = ""


class Monitor:
    """One look at a time: whoever asks meanwhile, or soon after, gets the same. For one event loop."""

    def __init__(
        self, queue: "AsyncQueue | Queue | str | ClientFactory", settings: MonitorSettings | None = None
    ) -> None:
        factory = replace(
            ClientFactory.of(queue), settings=CLIENT, middleware=(), instrumentation=None, given=None
        )
        self.settings = settings or MonitorSettings()
        self._queue = factory.internal_queue(1)
        self._looking: asyncio.Task[Look] | None = None
        self._last: Look | None = None

    async def look(self) -> Look:
        """Return what the queue looks like now. A look that failed has an error and no reading."""
        last = self._last
        if last is not None and time.monotonic() - last.ended_at < self.settings.max_age_s:
            return last
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        # Others wait for it, too.
        return await asyncio.shield(self._looking)

    async def close(self) -> None:
        """End a look that is under way, and close the connection."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        await close_quietly(self._queue.close())

    async def _look(self) -> Look:
        began_at = time.monotonic()
        reading, error = None, ""
        try:
            caller = self._queue.caller
            reading = await call_within(
                caller.source, self.settings.timeout_s, read_queue(caller, self.settings)
            )
        except Exception as failure:  # noqa: BLE001 - also what a newer queue answers must not end all looks
            reason = str(failure)
            if not isinstance(failure, LonnyError | psycopg.Error | OSError) or not reason:
                reason = f"{type(failure).__name__}: {reason}"
            error = one_line(truncate(reason, MAX_LINE))
        ended_at = time.monotonic()
        was_failing = self._last is not None and self._last.reading is None
        if error and not was_failing:
            LOGGER.warning("the queue cannot be looked at: %s", error)
        elif reading is not None and was_failing:
            LOGGER.warning("the queue can be looked at again")
        self._last, self._looking = Look(ended_at, ended_at - began_at, reading, error), None
        return self._last


async def read_queue(caller: "AsyncCaller", settings: MonitorSettings) -> Reading:
    """Read everything in one transaction, so that its limit on time also holds behind a pooler."""
    async with caller.source.connection(settings.timeout_s) as own, transaction(own):
        await caller.execute(queue_calls.limit_time(round(settings.timeout_s * 1000)), own)
        pulse = await caller.execute(queue_calls.pulse(settings.due_channels), own)
        fleet = await caller.execute(worker_calls.fleet(), own)
        tables = await caller.execute(queue_calls.tables(), own)
        crons = await caller.execute(cron_calls.overdue(MAX_CRONS), own)
        reader_lags = await caller.execute(history_calls.lag(MAX_READERS), own)
        channels: dict[str, ChannelStatus | None] = dict.fromkeys(settings.channels)
        if settings.top:
            busiest = await caller.execute(channel_calls.busiest(settings.top), own)
            channels.update((one.channel, one) for one in busiest)
        if settings.channels:
            named = await caller.execute(channel_calls.named(list(settings.channels)), own)
            channels.update((one.channel, one) for one in named)
    return Reading(pulse, fleet, tables, crons, reader_lags, channels)
