"""When a cron ticks: the arithmetic of its expression in its time zone. All instants returned are in UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from lonnymq.errors import LonnyError, install_advice, invalid
from lonnymq.model import CatchUp, DueCron, Ticks

if TYPE_CHECKING:
    from lonnymq.cron.simulation import Simulation

SECOND = timedelta(seconds=1)
END = datetime.max.replace(tzinfo=UTC) - SECOND
# A tick that nobody has created by then was missed: the workers were away.
MISSED_AFTER = timedelta(minutes=1)
# So many are decided at once, the rest follows: to compute them keeps a worker's loop busy for a while.
MOST_TICKS = 200
# The contents of one call's ticks take at most this many bytes together (one tick is always allowed).
MOST_BYTES = 1_000_000
# At most this many missed ticks are created late, the latest ones: an old cron must not flood the queue.
MOST_MISSED = 1000
MAX_EXPRESSION = 255
# When to look again at a cron that has no tick in the next 50 years.
LONG = timedelta(days=365)


def require(expression: Any, timezone: Any) -> None:
    """Refuse what cannot be understood, or never ticks."""
    if next(ticks_after(expression, timezone, datetime.now(UTC)), None) is None:
        raise invalid("expression", expression, "one that ticks within the next 50 years")


def require_library() -> None:
    """Refuse to begin where nobody can read expressions."""
    _library()


def explain(expression: str) -> str:
    """Return the expression in English: "At 03:00 every day"."""
    return _simulated(expression, datetime.now(UTC)).explain()


def ticks_after(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the ticks after an instant, for as long as anybody asks."""
    last = after.astimezone(UTC)
    for instant in _ticks(expression, timezone, last):
        if instant > last:
            last = instant
            yield instant


def latest_tick(expression: str, timezone: str, after: datetime, until: datetime) -> datetime | None:
    """Return the last tick after one instant and not after another, without walking through all of them."""
    begin = _begin_of_latest(1, expression, timezone, after, until)
    latest = None
    for latest_or_later in ticks_after(expression, timezone, begin):
        if latest_or_later > until:
            break
        latest = latest_or_later
    return latest


def decide(due: DueCron, most: int = MOST_TICKS) -> Ticks:
    """Return which ticks of a due cron are to be created, by what it says about those that were missed."""
    mark_at = due.mark_at.astimezone(UTC)
    most = max(1, min(most, MOST_BYTES // max(1, due.content_bytes)))
    # It may begin only in the future, or the clock was set back.
    now_at = max(due.now_at.astimezone(UTC), mark_at)
    recently = max(mark_at, now_at - MISSED_AFTER)
    since = mark_at if due.catch_up is CatchUp.ALL else recently
    ticks, next_at = _next_ticks(due, since, now_at, most)
    skipped_to = None
    if len(ticks) == most and since < recently:
        # Many were missed, perhaps too many.
        begin = _begin_of_latest(MOST_MISSED, due.expression, due.timezone, mark_at, recently)
        skipped_to = begin if begin >= ticks[0] else None
        ticks, next_at = _next_ticks(due, begin, now_at, most)
    if not ticks and due.catch_up is CatchUp.LATEST:
        missed = latest_tick(due.expression, due.timezone, mark_at, recently)
        ticks = [] if missed is None else [missed]
    # If there are more, these are due at once.
    until_at = ticks[-1] if next_at <= now_at else now_at
    return Ticks(tuple(ticks), until_at, next_at, skipped_to)


def _next_ticks(
    due: DueCron, since: datetime, now_at: datetime, most: int
) -> tuple[list[datetime], datetime]:
    """Return the first ticks up to now, and the one that follows."""
    ticks: list[datetime] = []
    for tick in ticks_after(due.expression, due.timezone, since):
        if tick > now_at or len(ticks) == most:
            return ticks, tick
        ticks.append(tick)
    return ticks, now_at + LONG


def _begin_of_latest(
    count: int, expression: str, timezone: str, after: datetime, until: datetime
) -> datetime:
    """Return an instant from which about `count` ticks remain until another one; not before `after`."""
    # All in UTC: instants of one zone are compared, and counted on, by their local time.
    begin, until = after.astimezone(UTC), until.astimezone(UTC)
    whole = min(until, END).replace(microsecond=0) + SECOND
    for tick in _ticks(expression, timezone, whole, is_backward=True):
        if tick <= begin:
            break
        # Backward, local times that repeat themselves can hide a tick; forward they do not.
        if tick <= until and (count := count - 1) == 0:
            return max(begin, tick - SECOND)
    return begin


def _ticks(expression: str, timezone: str, start: datetime, is_backward: bool = False) -> Iterator[datetime]:
    """Yield the ticks from an instant on, or back, as far as Python's calendar goes."""
    try:
        for tick in _simulated(expression, start.astimezone(zone(timezone)), is_backward):
            yield tick.astimezone(UTC)
    except OverflowError:
        return


def zone(timezone: Any) -> tzinfo:
    """Return a time zone by its name in the IANA database."""
    if timezone == "UTC":
        return UTC
    try:
        return ZoneInfo(timezone)
    except (TypeError, ValueError, OSError, LookupError):
        raise invalid(
            "timezone",
            timezone,
            'the name of a time zone, such as "Europe/Berlin" (a system without any: pip install tzdata)',
        ) from None


def _simulated(expression: Any, at: datetime, is_backward: bool = False) -> "Simulation":
    library = _library()
    if not isinstance(expression, str) or len(expression) > MAX_EXPRESSION:
        raise invalid("expression", expression, 'a cron expression, such as "*/5 * * * *"')
    from lonnymq.cron.simulation import Simulation

    try:
        return Simulation(expression, at, reverse=is_backward)
    except library.CronSimError as error:
        raise invalid(
            "expression", expression, f'a cron expression, such as "*/5 * * * *" ({error})'
        ) from None


def _library() -> ModuleType:
    try:
        import cronsim
    except ImportError:
        raise LonnyError(f"crons need a library that reads expressions: {install_advice('cron')}") from None
    return cronsim
