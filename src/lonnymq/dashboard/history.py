"""One hour of readings in memory: of the queue, and of the channels that were looked at."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from lonnymq.model import ChannelStatus, QueuePulse

KEPT = timedelta(hours=1)
# Readings that are closer together replace one another, so that an hour has at most this many points.
STEP = timedelta(seconds=10)
MAX_POINTS = int(KEPT / STEP)
# Twice as many as a page lists, and some that pages are about.
MAX_CHANNELS = 128
# Between two readings that are further apart, nobody looked.
MAX_GAP = timedelta(seconds=60)


class _Timed(Protocol):
    @property
    def at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class QueuePoint:
    """A reading of the queue."""

    at: datetime
    created: int
    leased: int
    lag_s: float
    demand: int
    in_progress: int


@dataclass(frozen=True, slots=True)
class ChannelPoint:
    """A reading of a channel, and how many messages the whole queue had released then."""

    at: datetime
    released: int
    waited_ms: int
    waiting: int
    leased: int
    queue_released: int


Point = TypeVar("Point", bound=_Timed)


class Ring(Generic[Point]):
    """The points of the last hour, one per step."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=MAX_POINTS + 2)

    @property
    def points(self) -> list[Point]:
        return list(self._points)

    def add(self, point: Point) -> None:
        """Add a point. The newest one stays until a step has passed since the one before it."""
        points = self._points
        if points and point.at <= points[-1].at:
            return
        if len(points) > 1 and points[-1].at - points[-2].at < STEP:
            points.pop()
        points.append(point)
        while points[0].at < point.at - KEPT:
            points.popleft()

    def since(self, age: timedelta) -> Point | None:
        """Return the oldest point that is not older than this; None if there is only the newest one."""
        if len(self._points) < 2:
            return None
        newest = self._points[-1].at
        return next(one for one in self._points if one.at >= newest - age or one is self._points[-2])


class History:
    """What was seen in the last hour. Of channels, those that were looked at last are kept."""

    def __init__(self) -> None:
        self.queue: Ring[QueuePoint] = Ring()
        self.channels: OrderedDict[str, Ring[ChannelPoint]] = OrderedDict()

    def add(self, pulse: QueuePulse, channels: Sequence[ChannelStatus]) -> None:
        point = QueuePoint(
            pulse.at, pulse.created_total, pulse.leased_total, pulse.turn_lag_s, pulse.demand, pulse.leased
        )
        self.queue.add(point)
        for status in channels:
            self.add_channel(status, pulse)

    def add_channel(self, status: ChannelStatus, pulse: QueuePulse, at: datetime | None = None) -> None:
        ring = self.channels.setdefault(status.channel, Ring())
        self.channels.move_to_end(status.channel)
        point = ChannelPoint(
            at or pulse.at,
            status.released,
            status.waited_ms,
            status.waiting,
            status.leased,
            pulse.leased_total,
        )
        ring.add(point)
        self.trim()

    def trim(self) -> None:
        """Forget the channels that were not looked at for longest."""
        while len(self.channels) > MAX_CHANNELS:
            self.channels.popitem(last=False)

    def share(self, channel: str) -> float | None:
        """Return which part of all releases in the last minute were this channel's; None if none were."""
        if (found := self._last_minute(channel)) is None:
            return None
        first, last = found
        return part(last.released - first.released, last.queue_released - first.queue_released)

    def rate(self, channel: str) -> float | None:
        """Return how many messages of a channel were released per second in the last minute."""
        if (found := self._last_minute(channel)) is None:
            return None
        first, last = found
        return per_second(first.released, last.released, first.at, last.at)

    def _last_minute(self, channel: str) -> tuple[ChannelPoint, ChannelPoint] | None:
        ring = self.channels.get(channel)
        first = ring.since(timedelta(minutes=1)) if ring else None
        return None if ring is None or first is None else (first, ring.points[-1])


def part(some: float, whole: float) -> float | None:
    """Return some / whole; None if there is nothing to divide. Counters may be reset, or lag behind."""
    return min(1.0, max(0.0, some / whole)) if whole > 0 else None


def steps(points: Sequence[Point]) -> list[tuple[Point, Point] | None]:
    """Return consecutive pairs; None where nobody looked between the two."""
    return [(one, two) if two.at - one.at <= MAX_GAP else None for one, two in pairwise(points)]


def per_second(before: int, after: int, one: datetime, two: datetime) -> float:
    """Return the rate of a counter; 0 if it was reset."""
    return max(0, after - before) / max(0.001, (two - one).total_seconds())
