"""When a cron ticks, by its expression in its time zone. All returned instants are in UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from lonnymq.errors import LonnyError, install_advice, invalid
from lonnymq.model import CatchUp, DueCron, Ticks

if TYPE_CHECKING:
    from lonnymq.cron.tick_iterator import TickIterator

SECOND = timedelta(seconds=1)
END = datetime.max.replace(tzinfo=UTC) - SECOND
# A tick that no worker has created within this time counts as missed.
MISSED_AFTER = timedelta(minutes=1)
# The most ticks that are decided at once, because computing them blocks a worker's event loop.
MAX_TICKS = 200
# The most bytes of all contents in one call; a single tick is always allowed.
MAX_BYTES = 1_000_000
# Only the latest ticks that were missed are created, at most this many, so that the queue is not flooded.
MAX_MISSED = 1000
MAX_EXPRESSION = 255
# When to look again at a cron that has no tick in the next 50 years.
LOOK_AGAIN_AFTER = timedelta(days=365)


def require_valid(expression: Any, timezone: Any) -> None:
    """Refuse an expression that is invalid or never ticks."""
    if next(ticks_after(expression, timezone, datetime.now(UTC)), None) is None:
        raise invalid("expression", expression, "one that ticks within the next 50 years")


def require_library() -> None:
    """Raise if the library that evaluates expressions is not installed."""
    _library()


def explain(expression: str) -> str:
    """Return the expression in English: "At 03:00 every day"."""
    return _tick_iterator(expression, datetime.now(UTC)).explain()


def ticks_after(expression: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the ticks after an instant, without end."""
    last = after.astimezone(UTC)
    for instant in _ticks(expression, timezone, last):
        if instant > last:
            last = instant
            yield instant


def latest_tick(expression: str, timezone: str, after: datetime, until: datetime) -> datetime | None:
    """Return the last tick in `(after, until]`, without computing all of them."""
    begin = _begin_of_latest(1, expression, timezone, after, until)
    latest = None
    for latest_or_later in ticks_after(expression, timezone, begin):
        if latest_or_later > until:
            break
        latest = latest_or_later
    return latest


def decide(due: DueCron, limit: int = MAX_TICKS) -> Ticks:
    """Return which ticks of a due cron to create, by its setting for missed ticks."""
    mark_at = due.mark_at.astimezone(UTC)
    limit = max(1, min(limit, MAX_BYTES // max(1, due.content_bytes)))
    # The cron may start in the future, or the clock was set back.
    now_at = max(due.now_at.astimezone(UTC), mark_at)
    recently = max(mark_at, now_at - MISSED_AFTER)
    since = mark_at if due.catch_up is CatchUp.ALL else recently
    ticks, next_at = _next_ticks(due, since, now_at, limit)
    skipped_to = None
    if len(ticks) == limit and since < recently:
        # Perhaps more ticks were missed than may be created.
        begin = _begin_of_latest(MAX_MISSED, due.expression, due.timezone, mark_at, recently)
        skipped_to = begin if begin >= ticks[0] else None
        ticks, next_at = _next_ticks(due, begin, now_at, limit)
    if not ticks and due.catch_up is CatchUp.LATEST:
        missed = latest_tick(due.expression, due.timezone, mark_at, recently)
        ticks = [] if missed is None else [missed]
    # If more ticks are due, the cron stays due.
    until_at = ticks[-1] if next_at <= now_at else now_at
    return Ticks(tuple(ticks), until_at, next_at, skipped_to)


def _next_ticks(
    due: DueCron, since: datetime, now_at: datetime, limit: int
) -> tuple[list[datetime], datetime]:
    """Return the first ticks up to now, and the next one after them."""
    ticks: list[datetime] = []
    for tick in ticks_after(due.expression, due.timezone, since):
        if tick > now_at or len(ticks) == limit:
            return ticks, tick
        ticks.append(tick)
    return ticks, now_at + LOOK_AGAIN_AFTER


def _begin_of_latest(
    count: int, expression: str, timezone: str, after: datetime, until: datetime
) -> datetime:
    """Return an instant, not before `after`, from which about `count` ticks remain until `until`."""
    # In UTC, because datetimes of the same zone are compared and subtracted by their local time.
    begin, until = after.astimezone(UTC), until.astimezone(UTC)
    start = min(until, END).replace(microsecond=0) + SECOND
    for tick in _ticks(expression, timezone, start, is_backward=True):
        if tick <= begin:
            break
        # Backwards, repeated local times can hide a tick; forwards they cannot.
        if tick <= until and (count := count - 1) == 0:
            return max(begin, tick - SECOND)
    return begin


def _ticks(expression: str, timezone: str, start: datetime, is_backward: bool = False) -> Iterator[datetime]:
    """Yield the ticks from an instant forwards or backwards, as far as Python's calendar goes."""
    try:
        for tick in _tick_iterator(expression, start.astimezone(zone(timezone)), is_backward):
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
            'the name of a time zone, such as "Europe/Berlin" (if the system has none: pip install tzdata)',
        ) from None


def _tick_iterator(expression: Any, at: datetime, is_backward: bool = False) -> "TickIterator":
    library = _library()
    if not isinstance(expression, str) or len(expression) > MAX_EXPRESSION:
        raise invalid("expression", expression, 'a cron expression, such as "*/5 * * * *"')
    from lonnymq.cron.tick_iterator import TickIterator

    try:
        return TickIterator(expression, at, reverse=is_backward)
    except library.CronSimError as error:
        raise invalid(
            "expression", expression, f'a cron expression, such as "*/5 * * * *" ({error})'
        ) from None


def _library() -> ModuleType:
    try:
        import cronsim
    except ImportError:
        raise LonnyError(
            f"crons need a library that evaluates their expressions: {install_advice('cron')}"
        ) from None
    return cronsim
