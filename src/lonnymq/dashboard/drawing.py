"""The charts of the pages, from the readings of the last hour."""

from collections.abc import Callable
from datetime import datetime, timedelta

from markupsafe import Markup

from lonnymq.charts.draw import format_count, format_duration, format_percent
from lonnymq.charts.series import Line, Value, figure, sparkline
from lonnymq.dashboard.history import (
    KEPT,
    ChannelPoint,
    History,
    Point,
    QueuePoint,
    Ring,
    part,
    per_second,
    steps,
)

# A shorter period is not stretched to the whole width.
MIN_PERIOD = timedelta(minutes=5)


def lag(history: History, now: datetime) -> Markup:
    values = _values(history.queue, lambda one: one.lag_s)
    return _figure("Turn lag", [Line("longest wait for a turn", 1, values)], now, _format_s)


def rates(history: History, now: datetime) -> Markup:
    created = _rates(history.queue, lambda one: one.created)
    released = _rates(history.queue, lambda one: one.leased)
    lines = [Line("created", 0, created), Line("released", 4, released)]
    return _figure("Messages per second", lines, now, _format_rate)


def work(history: History, now: datetime) -> Markup:
    demand = Line("demand", 2, _values(history.queue, lambda one: one.demand))
    running = Line("in progress", 4, _values(history.queue, lambda one: one.in_progress))
    return _figure("Demand and work in progress", [demand, running], now, format_count)


def channel_wait(ring: Ring[ChannelPoint], now: datetime) -> Markup:
    """Draw how long the messages that were released had waited on average."""

    def mean_ms(one: ChannelPoint, two: ChannelPoint) -> float | None:
        released = two.released - one.released
        return max(0, two.waited_ms - one.waited_ms) / released if released > 0 else None

    return _figure(
        "Mean wait of released messages", [Line("wait", 1, _between(ring, mean_ms))], now, format_duration
    )


def channel_share(ring: Ring[ChannelPoint], now: datetime) -> Markup:
    """Draw which part of all releases were this channel's."""

    def share(one: ChannelPoint, two: ChannelPoint) -> float | None:
        return part(two.released - one.released, two.queue_released - one.queue_released)

    return _figure("Share of all releases", [Line("share", 3, _between(ring, share))], now, format_percent)


def channel_backlog(ring: Ring[ChannelPoint], now: datetime) -> Markup:
    waiting = Line("waiting", 0, _values(ring, lambda one: one.waiting))
    leased = Line("in progress", 4, _values(ring, lambda one: one.leased))
    return _figure("Messages", [waiting, leased], now, format_count)


def spark(history: History, now: datetime, kind: str) -> Markup:
    """Draw a small line: of the 'lag', of the 'demand', or of the rate of what is 'created' or 'released'."""
    ring = history.queue
    lines: dict[str, Callable[[], Line]] = {
        "lag": lambda: Line("lag", 1, _values(ring, lambda one: one.lag_s)),
        "demand": lambda: Line("demand", 2, _values(ring, lambda one: one.demand)),
        "created": lambda: Line("created", 0, _rates(ring, lambda one: one.created)),
        "released": lambda: Line("released", 4, _rates(ring, lambda one: one.leased)),
    }
    drawn = lines[kind]()
    return Markup(sparkline(f"{kind} in the last hour", drawn, _begin([drawn], now), now))


def meter(some: float, whole: float) -> Markup:
    """Draw which part of something is used."""
    width = 100 * (part(some, whole) or 0.0)
    return Markup(
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="6"/>'
        '<rect class="used" width="{}" height="6"/></svg>'
    ).format(f"{width:.1f}")


def _figure(title: str, lines: list[Line], now: datetime, format_value: Callable[[float], str]) -> Markup:
    # The drawing module escapes what it is given.
    return Markup(figure(title, lines, _begin(lines, now), now, format_value))


def _begin(lines: list[Line], now: datetime) -> datetime:
    """Return where a chart begins: with the first reading of the last hour."""
    first = min((one.known[0][0] for one in lines if one.known), default=now)
    return max(now - KEPT, min(first, now - MIN_PERIOD))


def _values(ring: Ring[Point], value: Callable[[Point], float]) -> list[Value]:
    points = ring.points
    found: list[Value] = [(points[0].at, value(points[0]))] if points else []
    for pair in steps(points):
        found.append(None if pair is None else (pair[1].at, value(pair[1])))
    return found


def _rates(ring: Ring[QueuePoint], counter: Callable[[QueuePoint], int]) -> list[Value]:
    return [
        None
        if pair is None
        else (pair[1].at, per_second(counter(pair[0]), counter(pair[1]), pair[0].at, pair[1].at))
        for pair in steps(ring.points)
    ]


def _between(
    ring: Ring[ChannelPoint], value: Callable[[ChannelPoint, ChannelPoint], float | None]
) -> list[Value]:
    found: list[Value] = []
    for pair in steps(ring.points):
        between = None if pair is None else value(*pair)
        found.append(None if pair is None or between is None else (pair[1].at, between))
    return found


def _format_s(seconds: float) -> str:
    return format_duration(seconds * 1000)


def _format_rate(per_second: float) -> str:
    return f"{per_second:.1f}/s" if 0 < per_second < 10 else f"{format_count(per_second)}/s"
