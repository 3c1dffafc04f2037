"""When a cron ticks: the arithmetic of its expression in its time zone. All instants returned are in UTC."""

import importlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from lonnymq.errors import LonnyError, invalid
from lonnymq.model import CatchUp, DueCron, Ticks

if TYPE_CHECKING:
    from cronsim import CronSim

SECOND = timedelta(seconds=1)
# A tick that nobody has created by then was missed: the workers were away.
MISSED_AFTER = timedelta(minutes=1)
# So many are decided at once, the rest follows: to compute them keeps a worker's loop busy for a while.
MOST_TICKS = 200
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
    for tick in _simulated(expression, after.astimezone(zone(timezone))):
        # Compared in UTC: local times repeat themselves where the clock is set back.
        instant = tick.astimezone(UTC)
        if instant > last:
            last = instant
            yield instant


def latest_tick(expression: str, timezone: str, after: datetime, until: datetime) -> datetime | None:
    """Return the last tick after one instant and not after another, without walking through all of them."""
    # All in UTC: instants of one zone are compared, and counted on, by their local time.
    begin, until = after.astimezone(UTC), until.astimezone(UTC)
    whole = until.replace(microsecond=0) + SECOND
    for tick in _simulated(expression, whole.astimezone(zone(timezone)), is_backward=True):
        if tick.astimezone(UTC) <= until:
            begin = max(begin, tick.astimezone(UTC) - SECOND)
            break
    # Backward, local times that repeat themselves can hide a tick; forward they do not.
    latest = None
    for latest_or_later in ticks_after(expression, timezone, begin):
        if latest_or_later > until:
            break
        latest = latest_or_later
    return latest


def decide(due: DueCron, most: int = MOST_TICKS) -> Ticks:
    """Return which ticks of a due cron are to be created, by what it says about those that were missed."""
    mark_at = due.mark_at.astimezone(UTC)
    # It may begin only in the future, or the clock was set back.
    now_at = max(due.now_at.astimezone(UTC), mark_at)
    since = mark_at if due.catch_up is CatchUp.ALL else max(mark_at, now_at - MISSED_AFTER)
    ticks: list[datetime] = []
    next_at = now_at + LONG
    for tick in ticks_after(due.expression, due.timezone, since):
        if len(ticks) == most:
            # The others are due at once.
            return Ticks(tuple(ticks), ticks[-1], tick)
        if tick > now_at:
            next_at = tick
            break
        ticks.append(tick)
    if not ticks and due.catch_up is CatchUp.LATEST:
        missed = latest_tick(due.expression, due.timezone, mark_at, since)
        ticks = [] if missed is None else [missed]
    return Ticks(tuple(ticks), now_at, next_at)


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


def _simulated(expression: Any, at: datetime, is_backward: bool = False) -> "CronSim":
    library = _library()
    if not isinstance(expression, str):
        raise invalid("expression", expression, 'a cron expression, such as "*/5 * * * *"')
    try:
        simulated: CronSim = library.CronSim(expression, at, reverse=is_backward)
        return simulated
    except library.CronSimError as error:
        raise invalid(
            "expression", expression, f'a cron expression, such as "*/5 * * * *" ({error})'
        ) from None


def _library() -> Any:
    try:
        return importlib.import_module("cronsim")
    except ImportError:
        raise LonnyError('crons need a library that reads expressions: pip install "lonnymq[cron]"') from None
