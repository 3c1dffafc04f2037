"""Bring the lake's figures up to date: of the days that new attempts speak of, and of no others.

Attempts come late: a message may wait for days, and its archive for longer. So a run looks at which files
are new since the last one, which days their rows touch, and computes these days again from all attempts that
touch them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from lonnymq.pipeline.events import days_touched
from lonnymq.pipeline.forecast import HOUR_S, forecast
from lonnymq.pipeline.lake import Batch, Lake, Table
from lonnymq.pipeline.lake.delta import days_of
from lonnymq.pipeline.shares import fairness
from lonnymq.pipeline.source import Say, silent
from lonnymq.pipeline.windows import checked_window_s, windows

ATTEMPTS, POLICIES = "attempts", "policies"
Touched = Callable[[frozenset[str]], set[date]]


@dataclass(frozen=True)
class Analysed:
    """What a run computed: the days, and how many rows of windows they have."""

    days: tuple[date, ...]
    windows: int


def analyse(
    spark: SparkSession,
    lake: Lake,
    *,
    window_s: int = 60,
    over_s: int = HOUR_S,
    is_full: bool = False,
    say: Say = silent,
) -> Analysed:
    """Update windows, fairness and forecast; `is_full` computes every day again."""
    checked_window_s(window_s)
    seen = [Batch(ATTEMPTS, lake.attempts.version or 0), Batch(POLICIES, lake.policies.version or 0)]
    table = lake.windows(window_s)
    # Asked for windows and for fairness, of the same files almost always: looked at once.
    touched = cache(partial(_touched, spark, lake))
    days = _stale_days(touched, lake, table, is_full)
    count = 0
    if days:
        say(f"windows of {window_s} s, days: {len(days)}, {days[0]} to {days[-1]}")
        frame = windows(
            lake.attempts.read(spark, _paths_from(lake.attempts, days[0])),
            lake.policies.read(spark),
            window_s=window_s,
            days=days,
        )
        count = table.replace(frame, days, seen)
    fairness_days = _stale_days(touched, lake, lake.fairness(window_s), is_full)
    _judge(spark, lake, window_s, seen, fairness_days, say)
    _forecast(spark, lake, window_s, over_s, say)
    return Analysed(tuple(days), count)


def _judge(
    spark: SparkSession, lake: Lake, window_s: int, seen: list[Batch], days: list[date], say: Say
) -> None:
    """By days of its own: a run that was cut off may have left windows up to date, and this not."""
    if days:
        say(f"fairness, days: {len(days)}")
        chosen = lake.windows(window_s).read(spark).where(f.col("day").isin(days))
        lake.fairness(window_s).replace(fairness(chosen), days, seen)


def _forecast(spark: SparkSession, lake: Lake, window_s: int, over_s: int, say: Say) -> None:
    """Until when the queue was last looked at; without that, until the last attempt ended."""
    waiting = lake.waiting.read(spark)
    taken = waiting.agg(f.max(f.unix_millis("taken_at"))).first()
    known = lake.windows(window_s).read(spark)
    last = known.agg(f.max(f.unix_millis("window_start")) + window_s * 1000).first()
    until_ms = (taken[0] if taken is not None else None) or (last[0] if last is not None else None)
    if until_ms is None:
        return
    until = datetime.fromtimestamp(until_ms / 1000, UTC)
    say(f"forecast from {until:%Y-%m-%d %H:%M:%S}")
    lake.forecast.replace(
        forecast(known, waiting, until=until, over_s=over_s), None, [Batch("forecast", until_ms)]
    )


def _stale_days(touched: Touched, lake: Lake, table: Table, is_full: bool) -> list[date]:
    """The days of a table that must be computed again."""
    attempts_then, policies_then = table.last_batch(ATTEMPTS), table.last_batch(POLICIES)
    before = None if is_full or attempts_then is None else lake.attempts.paths(attempts_then)
    now = lake.attempts.paths() or frozenset()
    if before is None:
        return sorted({*touched(now), *table.days()})
    # Files that went, as when old days are deleted, leave their own day to be computed again.
    stale = {*touched(now - before), *days_of(before - now)}
    policies_before = None if policies_then is None else lake.policies.paths(policies_then)
    if policies_before is None or not policies_before:
        changed = lake.policies.days()
        return sorted({*stale, *table.days()} if changed else stale)
    changed = days_of((lake.policies.paths() or frozenset()) ^ policies_before)
    if changed:
        stale |= {day for day in table.days() if day >= changed[0]}
    return sorted(stale)


def _touched(spark: SparkSession, lake: Lake, paths: frozenset[str]) -> set[date]:
    if not paths:
        return set()
    return {row.day for row in days_touched(lake.attempts.read(spark, paths)).collect()}


def _paths_from(table: Table, day: date) -> list[str]:
    """The files with attempts that may touch that day or a later one."""
    return [path for path in table.paths() or () if (days_of([path])[0] - day).days >= -1]
