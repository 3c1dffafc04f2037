"""Computes the figures of each channel in each window, in one pass over the attempts.

The events of a channel and day form a line. How many messages wait and run after each event is a running sum
over the line, and a line of millions of events would be one task's sort. So a line is cut into parts of about
an hour, which are summed up by themselves; what each part begins with is added to the figures of its windows,
which are few. The line of a channel with a rate limit stays whole: the limit compares releases across parts,
and itself bounds their number.
"""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from lonnymq.errors import invalid
from lonnymq.pipeline import histograms, schemas
from lonnymq.pipeline.events import attempts_affecting, earlier_ends, events
from lonnymq.pipeline.histograms import PERCENTS
from lonnymq.pipeline.policies import join_policies, rate_limits
from lonnymq.pipeline.schemas import DAY_MS
from lonnymq.pipeline.shares import add_shares

WINDOW = ("channel", "day", "part", "start")
# A part of a line is the smallest number of windows that takes this long.
PART_MS = 3_600_000
DURATIONS = ("wait", "run")
OUTCOMES = ("completed", "deferred", "expired", "buried", "cancelled")
# Zero in a window without events.
SUMS = ("arrivals", "releases", "retries", *OUTCOMES, "wait_total_ms", "run_total_ms", "gaps_too_small")


def windows(
    attempts: DataFrame, policies: DataFrame, *, window_s: int = 60, days: Sequence[date] | None = None
) -> DataFrame:
    """Return the rows of the lake's table `windows`, for all days or the given ones.

    `attempts` must contain the attempts that affect these days, and the earlier attempts of their messages.
    """
    check_window_s(window_s)
    window_ms = window_s * 1000
    limits = rate_limits(policies)
    relevant = attempts if days is None else attempts_affecting(attempts, days)
    timeline = events(relevant, earlier_ends(attempts), limits)
    if days is not None:
        timeline = timeline.where(f.col("day").isin(list(days)))
    measured = _aggregate(_add_levels(timeline, limits, window_ms))
    filled = _fill_quiet_windows(_join_parts(measured), window_ms)
    compared = _compare_with_policy(join_policies(filled, policies))
    return schemas.conform(
        add_shares(compared)
        .withColumn("window_start", f.timestamp_millis("start"))
        .withColumn("window_s", f.lit(window_s)),
        schemas.WINDOWS,
    )


def check_window_s(window_s: int) -> None:
    """Raise unless the window's length divides a day, because each day is computed by itself."""
    if type(window_s) is not int or window_s < 1 or 86_400 % window_s:
        raise invalid("window_s", window_s, "a whole number of seconds that divides a day")


def _add_levels(timeline: DataFrame, limits: DataFrame, window_ms: int) -> DataFrame:
    """Add to each event how many messages more wait and run after it than before its part of the line.

    Also add the gap to an earlier release of the same part.
    """
    part_ms = -(-PART_MS // window_ms) * window_ms
    line = Window.partitionBy("channel", "day", "part")
    # A range, not rows: events at the same time count together, whatever their order.
    until_now = line.orderBy("at").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    small_limits = f.broadcast(
        limits.select(
            f.col("channel").alias("limited"), "from_day", "until_day", "release_interval_ms", "release_burst"
        )
    )
    is_limited = (
        (f.col("channel") == f.col("limited"))
        & (f.col("day") >= f.col("from_day"))
        & (f.col("day") < f.col("until_day"))
    )
    bursts = sorted({int(row[0]) for row in limits.select("release_burst").distinct().collect()} | {1})
    start = f.col("at") - f.pmod(f.col("at"), f.lit(window_ms))
    part = f.floor((f.col("at") - f.unix_date("day").cast("long") * DAY_MS) / part_ms)
    return (
        timeline.join(small_limits, is_limited, "left")
        .select(
            *(column for column in timeline.columns),
            start.alias("start"),
            f.col("release_interval_ms").alias("interval"),
            f.coalesce("release_burst", f.lit(1)).alias("burst"),
            f.when(f.col("release_interval_ms").isNull(), part).otherwise(0).alias("part"),
        )
        .withColumn("is_waiting", f.sum("waiting").over(until_now))
        .withColumn("is_running", f.sum("running").over(until_now))
        .withColumn("gap", f.col("release") - _release_before(bursts))
        .where(~f.col("is_context"))
    )


def _release_before(bursts: Sequence[int]) -> Column:
    """The release `burst` places earlier: since then, one interval must have passed."""
    earlier = f.lit(None).cast("long")
    for burst in bursts:
        lagged = f.expr(
            f"lag(release, {burst}) ignore nulls over (partition by channel, day, part order by at)"
        )
        earlier = f.when(f.col("burst") == burst, lagged).otherwise(earlier)
    return earlier


def _aggregate(with_levels: DataFrame) -> DataFrame:
    """Aggregate events by channel and window: first by buckets of durations, which become histograms.

    Each event has the wait of a release, the run of an end, or neither.
    """
    by_bucket = (
        with_levels.withColumn("wait_bucket", histograms.bucket(f.col("wait")))
        .withColumn("run_bucket", histograms.bucket(f.col("run")))
        .groupBy(*WINDOW, "wait_bucket", "run_bucket")
        .agg(
            f.count(f.lit(1)).alias("events"),
            f.sum("arrival").alias("arrivals"),
            f.count("release").alias("releases"),
            f.sum("retry").cast("long").alias("retries"),
            *(f.count_if(f.col("outcome") == outcome).alias(outcome) for outcome in OUTCOMES),
            *(f.max(kind).alias(f"{kind}_max_ms") for kind in DURATIONS),
            *(f.coalesce(f.sum(kind), f.lit(0)).alias(f"{kind}_total_ms") for kind in DURATIONS),
            f.min("gap").alias("gap_min_ms"),
            f.count_if(f.col("gap") < f.col("interval")).alias("gaps_too_small"),
            f.min("at").alias("first_at"),
            f.min("release").alias("first_release"),
            f.max("release").alias("last_release"),
            f.sum("waiting").alias("net_waiting"),
            f.sum("running").alias("net_running"),
            f.min("is_waiting").alias("least_waiting"),
            f.max("is_waiting").alias("max_waiting"),
            f.max("is_running").alias("max_running"),
        )
    )
    least = ("gap_min_ms", "first_at", "first_release", "least_waiting")
    most = ("wait_max_ms", "run_max_ms", "last_release", "max_waiting", "max_running")
    aggregated = by_bucket.groupBy(*WINDOW).agg(
        *(f.sum(name).alias(name) for name in (*SUMS, "net_waiting", "net_running")),
        *(f.min(name).alias(name) for name in least),
        *(f.max(name).alias(name) for name in most),
        *(
            histograms.collect(f.col(f"{kind}_bucket"), f.col("events")).alias(f"{kind}_histogram")
            for kind in DURATIONS
        ),
    )
    return aggregated.withColumns(
        {
            # The middle of the highest bucket may exceed the longest duration.
            f"{kind}_p{percent}_ms": f.least(
                histograms.percentile(f.col(f"{kind}_histogram"), percent), f"{kind}_max_ms"
            )
            for kind in DURATIONS
            for percent in PERCENTS
        }
    )


def _join_parts(measured: DataFrame) -> DataFrame:
    """Add to each window's levels what its part of the line began with, and the gap to the part before."""
    line = Window.partitionBy("channel", "day").orderBy("start")
    part = Window.partitionBy("channel", "day", "part").orderBy("start")

    def before_part(net: str) -> Column:
        return f.sum(net).over(line) - f.sum(net).over(part)

    def last_release(windows: WindowSpec) -> Column:
        earlier = windows.rowsBetween(Window.unboundedPreceding, -1)
        return f.last("last_release", ignorenulls=True).over(earlier)

    gap = f.when(last_release(part).isNull(), f.col("first_release") - last_release(line))
    return (
        measured.withColumn("waiting_before_part", before_part("net_waiting"))
        .withColumn("running_before_part", before_part("net_running"))
        .withColumn("least_waiting", f.col("least_waiting") + f.col("waiting_before_part"))
        .withColumn("max_waiting", f.col("max_waiting") + f.col("waiting_before_part"))
        .withColumn("max_running", f.col("max_running") + f.col("running_before_part"))
        .withColumn("gap_min_ms", f.least("gap_min_ms", gap))
    )


def _fill_quiet_windows(measured: DataFrame, window_ms: int) -> DataFrame:
    """Add levels at the edges, and rows for windows without events in which messages waited or ran."""
    line = Window.partitionBy("channel", "day").orderBy("start")
    end_of_day = (f.unix_date("day").cast("long") + 1) * DAY_MS
    is_late = f.col("first_at") > f.col("start")
    levels = (
        measured.withColumn("backlog_end", f.sum("net_waiting").over(line))
        .withColumn("running_end", f.sum("net_running").over(line))
        .withColumn("next_start", f.coalesce(f.lead("start").over(line), end_of_day))
        .withColumn("waiting_before", f.when(is_late, f.lag("backlog_end", 1, 0).over(line)))
        .withColumn("running_before", f.when(is_late, f.lag("running_end", 1, 0).over(line)))
        .withColumn("backlog_low", f.least("least_waiting", "waiting_before"))
        .withColumn("backlog_peak", f.greatest("max_waiting", "waiting_before"))
        # An attempt that began and ended in the same millisecond ran as well.
        .withColumn(
            "concurrency_peak",
            f.greatest("max_running", "running_before", f.when(f.col("releases") > 0, 1).otherwise(0)),
        )
    )
    quiet = f.sequence(f.col("start") + window_ms, f.col("next_start") - window_ms, f.lit(window_ms))
    is_quiet = (f.col("next_start") > f.col("start") + window_ms) & (
        (f.col("backlog_end") > 0) | (f.col("running_end") > 0)
    )
    starts = f.when(is_quiet, f.concat(f.array("start"), quiet)).otherwise(f.array("start"))
    expanded = levels.withColumn("event_start", f.col("start")).withColumn("start", f.explode(starts))
    has_events = f.col("start") == f.col("event_start")
    distribution = [f"{kind}_{name}_ms" for kind in DURATIONS for name in ("p50", "p95", "p99", "max")]
    no_values = f.array().cast(schemas.HISTOGRAM)
    levels_at_end = {
        "backlog_low": "backlog_end",
        "backlog_peak": "backlog_end",
        "concurrency_peak": "running_end",
    }
    return expanded.withColumns(
        {name: f.when(has_events, f.col(name)).otherwise(0) for name in SUMS}
        | {
            name: f.when(has_events, f.col(name)).otherwise(no_values)
            for name in (f"{kind}_histogram" for kind in DURATIONS)
        }
        | {name: f.when(has_events, f.col(name)) for name in (*distribution, "gap_min_ms")}
        | {name: f.when(has_events, f.col(name)).otherwise(f.col(end)) for name, end in levels_at_end.items()}
    )


def _compare_with_policy(windows_and_policies: DataFrame) -> DataFrame:
    return windows_and_policies.withColumn(
        "failures", f.col("deferred") + f.col("expired") + f.col("buried")
    ).withColumn(
        "is_over_cap", f.coalesce(f.col("concurrency_peak") > f.col("max_concurrency"), f.lit(False))
    )
