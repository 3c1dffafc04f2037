"""One hour of readings, bounded in number, and what is computed from them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lonnymq.dashboard.history import (
    MAX_CHANNELS,
    MAX_POINTS,
    ChannelPoint,
    History,
    QueuePoint,
    Ring,
    per_second,
    steps,
)

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def point(seconds: float, **values: Any) -> QueuePoint:
    return replace(QueuePoint(BEGAN + timedelta(seconds=seconds), 0, 0, 0.0, 0, 0), **values)


def test_a_day_of_readings_leaves_one_hour_of_points() -> None:
    ring: Ring[QueuePoint] = Ring()
    for second in range(0, 86_400, 2):
        ring.add(point(second, created=second))
    points = ring.points
    assert len(points) <= MAX_POINTS + 2
    assert timedelta(minutes=59) < points[-1].at - points[0].at <= timedelta(hours=1)
    assert points[-1].created == 86_398
    assert all(pair is not None for pair in steps(points))


def test_the_newest_reading_is_always_there_and_older_ones_are_ignored() -> None:
    ring: Ring[QueuePoint] = Ring()
    assert ring.since(timedelta(minutes=1)) is None
    for second in (0, 1, 2, 30, 31, 5):
        ring.add(point(second))
    assert [(one.at - BEGAN).seconds for one in ring.points] == [0, 30, 31]


def test_a_time_when_nobody_looked_is_a_gap() -> None:
    ring: Ring[QueuePoint] = Ring()
    for second in (0, 20, 200, 220):
        ring.add(point(second))
    assert [pair is None for pair in steps(ring.points)] == [False, True, False]


def test_counters_that_were_reset_give_no_negative_rates() -> None:
    assert per_second(100, 3, BEGAN, BEGAN + timedelta(seconds=10)) == 0
    assert per_second(100, 150, BEGAN, BEGAN + timedelta(seconds=10)) == 5
    assert per_second(1, 2, BEGAN, BEGAN) > 0


def test_the_channels_looked_at_last_are_kept() -> None:
    history = History()
    for number in range(1_000):
        ring: Ring[ChannelPoint] = history.channels.setdefault(f"c{number}", Ring())
        assert ring.points == []
        history.trim()
    assert list(history.channels) == [f"c{number}" for number in range(1_000 - MAX_CHANNELS, 1_000)]


def test_rate_and_share_of_a_channel_are_those_of_the_last_minute() -> None:
    history = History()
    assert (history.rate("acme"), history.share("acme")) == (None, None)
    ring: Ring[ChannelPoint] = history.channels.setdefault("acme", Ring())
    for second, released, of_all in ((0, 0, 0), (60, 1_000, 2_000), (90, 1_300, 2_400), (120, 1_600, 3_200)):
        ring.add(ChannelPoint(BEGAN + timedelta(seconds=second), released, 0, 0, 0, of_all))
    assert (history.rate("acme"), history.share("acme")) == (10.0, 0.5)
