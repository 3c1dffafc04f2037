"""Brings the lake's figures up to date, computing only the days that new attempts affect.

Attempts arrive late: a message may wait for days before it ends, and longer before it is archived. So a run
finds the files that are new since the last run and the days that their rows affect, and computes these days
again from all attempts that affect them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lonnymq.pipeline.day_range import ALL_DAYS, DayRange
from lonnymq.pipeline.events import attempts_affecting, days_affected, first_due_day
from lonnymq.pipeline.forecast import HOUR_S, forecast
from lonnymq.pipeline.lake import Batch, Lake, Table
from lonnymq.pipeline.lake.files import days_of
from lonnymq.pipeline.reasons import RESOLUTION_S, reasons
from lonnymq.pipeline.shares import fairness
from lonnymq.pipeline.source import OnProgress, ignore_progress
from lonnymq.pipeline.windows import check_window_s, windows

ATTEMPTS, POLICIES, FIGURES = "attempts", "policies", "figures"
# Increased when figures are computed differently, so that all days are computed again.
FIGURES_VERSION = 3
DaysAffected = Callable[[frozenset[str]], set[date]]


@dataclass(frozen=True)
class AnalyseResult:
    """The days that a run computed, and how many rows they have in the table of windows."""

    days: tuple[date, ...]
    windows: int


def analyse(
    spark: SparkSession,
    lake: Lake,
    *,
    window_s: int = 60,
    over_s: int = HOUR_S,
    is_full: bool = False,
    within: DayRange = ALL_DAYS,
    on_progress: OnProgress = ignore_progress,
) -> AnalyseResult:
    """Update windows, fairness and forecast; with `is_full`, compute every day again.

    Days that are not `within` the range are left for a later run, which computes them and, because a table
    records only that all of it is up to date, these days again.
    """
    check_window_s(window_s)
    lake.require()
    seen = [
        Batch(ATTEMPTS, lake.attempts.version or 0),
        Batch(POLICIES, lake.policies.version or 0),
        Batch(FIGURES, FIGURES_VERSION),
    ]
    table = lake.windows(window_s)
    # Windows and fairness almost always ask about the same files, so the answer is cached.
    affected = cache(partial(_days_affected, spark, lake))
    stale = partial(_stale_days, affected, lake, is_full=is_full)
    days, done = _choose(stale(table), within, seen)
    count = 0
    if days:
        on_progress(f"windows of {window_s} s, days: {len(days)}, {days[0]} to {days[-1]}")
        frame = windows(
            _read_attempts(spark, lake, days),
            lake.policies.read(spark),
            window_s=window_s,
            days=days,
        )
        count = table.replace(frame, days, done)
    reasons_days, done = _choose(stale(lake.reasons), within, seen)
    _update_reasons(spark, lake, window_s, done, reasons_days, on_progress)
    fairness_days, done = _choose(stale(lake.fairness(window_s)), within, seen)
    _update_fairness(spark, lake, window_s, done, fairness_days, on_progress)
    _update_forecast(spark, lake, window_s, over_s, on_progress)
    return AnalyseResult(tuple(days), count)


def _choose(stale: list[date], within: DayRange, seen: list[Batch]) -> tuple[list[date], list[Batch]]:
    """Return the stale days to compute, and what to record: nothing if other days stay stale."""
    days = within.of(stale)
    return days, seen if days == stale else []


def _update_reasons(
    spark: SparkSession,
    lake: Lake,
    window_s: int,
    seen: list[Batch],
    days: list[date],
    on_progress: OnProgress,
) -> None:
    """Update the reasons, which do not depend on the length of the windows of this run."""
    if not days:
        return
    on_progress(f"reasons, days: {len(days)}")
    if window_s == RESOLUTION_S:
        minutes = lake.windows(window_s).read(spark).where(f.col("day").isin(days))
    else:
        attempts, policies = _read_attempts(spark, lake, days), lake.policies.read(spark)
        minutes = windows(attempts, policies, window_s=RESOLUTION_S, days=days)
    lake.reasons.replace(reasons(minutes), days, seen)


def _update_fairness(
    spark: SparkSession,
    lake: Lake,
    window_s: int,
    seen: list[Batch],
    days: list[date],
    on_progress: OnProgress,
) -> None:
    """Update fairness; its days may differ, because an interrupted run may have updated only the windows."""
    if days:
        on_progress(f"fairness, days: {len(days)}")
        chosen = lake.windows(window_s).read(spark).where(f.col("day").isin(days))
        lake.fairness(window_s).replace(fairness(chosen), days, seen)


def _update_forecast(
    spark: SparkSession, lake: Lake, window_s: int, over_s: int, on_progress: OnProgress
) -> None:
    """Forecast from the time of the last snapshot of the queue or, without one, from the last window."""
    waiting = lake.waiting.read(spark)
    taken = waiting.agg(f.max(f.unix_millis("taken_at"))).first()
    table = lake.windows(window_s)
    until_ms = (None if taken is None else taken[0]) or _end_of_last_window(spark, table, window_s)
    if until_ms is None:
        return
    until = datetime.fromtimestamp(until_ms / 1000, UTC)
    recent = DayRange((until - timedelta(seconds=over_s)).date(), until.date()).rows(table.read(spark))
    on_progress(f"forecast from {until:%Y-%m-%d %H:%M:%S}")
    lake.forecast.replace(
        forecast(recent, waiting, until=until, over_s=over_s), None, [Batch("forecast", until_ms)]
    )


def _end_of_last_window(spark: SparkSession, table: Table, window_s: int) -> int | None:
    days = table.days()
    if not days:
        return None
    last = DayRange(since=days[-1]).rows(table.read(spark))
    found = last.agg(f.max(f.unix_millis("window_start")) + window_s * 1000).first()
    return None if found is None else int(found[0])


def _stale_days(affected: DaysAffected, lake: Lake, table: Table, is_full: bool) -> list[date]:
    """Return the days of a table that must be computed again."""
    attempts_then, policies_then = table.last_batch(ATTEMPTS), table.last_batch(POLICIES)
    is_full = is_full or attempts_then is None or table.last_batch(FIGURES) != FIGURES_VERSION
    before = None if is_full else lake.attempts.paths(attempts_then)
    now = lake.attempts.paths() or frozenset()
    if before is None:
        return sorted({*affected(now), *table.days()})
    # If files were removed, for example because old days were deleted, their own day is computed again.
    stale = {*affected(now - before), *days_of(before - now)}
    policies_before = None if policies_then is None else lake.policies.paths(policies_then)
    if policies_before is None or not policies_before:
        changed = lake.policies.days()
        return sorted({*stale, *table.days()} if changed else stale)
    changed = days_of((lake.policies.paths() or frozenset()) ^ policies_before)
    if changed:
        stale |= {day for day in table.days() if day >= changed[0]}
    return sorted(stale)


def _days_affected(spark: SparkSession, lake: Lake, paths: frozenset[str]) -> set[date]:
    if not paths:
        return set()
    return {row.day for row in days_affected(lake.attempts.read(spark, paths)).collect()}


def _read_attempts(spark: SparkSession, lake: Lake, days: list[date]) -> DataFrame:
    """Return the attempts that affect these days, and those before them of the same messages."""
    near = lake.attempts.read(spark, _paths_from(lake.attempts, days[0]))
    first_due = first_due_day(attempts_affecting(near, days))
    if first_due is None or first_due >= days[0]:
        return near
    return lake.attempts.read(spark, _paths_from(lake.attempts, first_due))


def _paths_from(table: Table, day: date) -> list[str]:
    """Return the files with attempts that may affect that day or a later one."""
    return [path for path in table.paths() or () if (days_of([path])[0] - day).days >= -1]
