"""Each channel in each window of time: one pass over the attempts, one shuffle, one sort."""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from lonnymq.errors import invalid
from lonnymq.pipeline import policies as rules
from lonnymq.pipeline import schemas
from lonnymq.pipeline.events import events, touching
from lonnymq.pipeline.schemas import DAY_MS
from lonnymq.pipeline.shares import with_shares

PERCENTILES = (0.5, 0.95, 0.99)
# Exact up to so many values, and off by at most one in so many ranks above.
ACCURACY = 10_000
COUNTS = ("arrivals", "releases", "retries", "completed", "deferred", "expired", "buried", "cancelled")
TOTALS = ("wait_total_ms", "run_total_ms")


def windows(
    attempts: DataFrame, policies: DataFrame, *, window_s: int = 60, days: Sequence[date] | None = None
) -> DataFrame:
    """Return the lake's table `windows` for these attempts, for all days or the given ones."""
    window_ms = checked_window_s(window_s) * 1000
    limits = rules.limits(policies)
    chosen = attempts if days is None else touching(attempts, days)
    happened = events(chosen, limits)
    if days is not None:
        happened = happened.where(f.col("day").isin(list(days)))
    measured = _measured(_swept(happened, limits, window_ms), window_ms)
    filled = _filled(measured, window_ms)
    judged = _judged(rules.allowed(filled, policies))
    return schemas.conformed(
        with_shares(judged)
        .withColumn("window_start", f.timestamp_millis("start"))
        .withColumn("window_s", f.lit(window_s)),
        schemas.WINDOWS,
    )


def checked_window_s(window_s: int) -> int:
    """Return the size of a window if it divides a day: each day is computed by itself."""
    if type(window_s) is not int or window_s < 1 or 86_400 % window_s:
        raise invalid("window_s", window_s, "a whole number of seconds that divides a day")
    return window_s


def _swept(happened: DataFrame, limits: DataFrame, window_ms: int) -> DataFrame:
    """Walk each line in the order of time, and note how many wait and run after each moment."""
    line = Window.partitionBy("channel", "day")
    # By range: events of one moment count together, whatever their order.
    until_now = line.orderBy("at").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    narrow = f.broadcast(
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
    return (
        happened.join(narrow, is_limited, "left")
        .select(
            *(column for column in happened.columns),
            start.alias("start"),
            f.col("release_interval_ms").alias("interval"),
            f.coalesce("release_burst", f.lit(1)).alias("burst"),
        )
        .withColumn("is_waiting", f.sum("waiting").over(until_now))
        .withColumn("is_running", f.sum("running").over(until_now))
        .withColumn("gap", f.col("release") - _release_before(bursts))
        .where(~f.col("is_context"))
    )


def _release_before(bursts: Sequence[int]) -> Column:
    """The release as many places before as may come at once: from it, one interval must have passed."""
    before = f.lit(None).cast("long")
    for burst in bursts:
        lagged = f.expr(f"lag(release, {burst}) ignore nulls over (partition by channel, day order by at)")
        before = f.when(f.col("burst") == burst, lagged).otherwise(before)
    return before


def _measured(swept: DataFrame, window_ms: int) -> DataFrame:
    def ended(outcome: str) -> Column:
        return f.count_if(f.col("outcome") == outcome).alias(outcome)

    return (
        swept.groupBy("channel", "day", "start")
        .agg(
            f.sum("arrival").alias("arrivals"),
            f.count("release").alias("releases"),
            f.sum("retry").cast("long").alias("retries"),
            *(ended(outcome) for outcome in ("completed", "deferred", "expired", "buried", "cancelled")),
            *_spread("wait"),
            *_spread("run"),
            f.min("gap").alias("gap_min_ms"),
            f.count_if(f.col("gap") < f.col("interval")).alias("gaps_too_small"),
            f.min("at").alias("first_at"),
            f.sum("waiting").alias("net_waiting"),
            f.sum("running").alias("net_running"),
            f.min("is_waiting").alias("least_waiting"),
            f.max("is_waiting").alias("most_waiting"),
            f.max("is_running").alias("most_running"),
        )
        .withColumns(
            {
                f"{kind}_p{round(100 * p)}_ms": f.col(f"{kind}_spread")[place]
                for kind in ("wait", "run")
                for place, p in enumerate(PERCENTILES)
            }
        )
    )


def _spread(kind: str) -> tuple[Column, ...]:
    return (
        f.percentile_approx(kind, list(PERCENTILES), ACCURACY).alias(f"{kind}_spread"),
        f.max(kind).alias(f"{kind}_max_ms"),
        f.coalesce(f.sum(kind), f.lit(0)).alias(f"{kind}_total_ms"),
    )


def _filled(measured: DataFrame, window_ms: int) -> DataFrame:
    """Levels at the edges, and rows for windows in which nothing happened but something waited or ran."""
    line = Window.partitionBy("channel", "day").orderBy("start")
    end_of_day = (f.unix_date("day").cast("long") + 1) * DAY_MS
    is_late = f.col("first_at") > f.col("start")
    levels = (
        measured.withColumn("backlog_end", f.sum("net_waiting").over(line))
        .withColumn("running_end", f.sum("net_running").over(line))
        .withColumn("following", f.coalesce(f.lead("start").over(line), end_of_day))
        .withColumn("came_waiting", f.when(is_late, f.lag("backlog_end", 1, 0).over(line)))
        .withColumn("came_running", f.when(is_late, f.lag("running_end", 1, 0).over(line)))
        .withColumn("backlog_low", f.least("least_waiting", "came_waiting"))
        .withColumn("backlog_peak", f.greatest("most_waiting", "came_waiting"))
        # Attempts that ended in the millisecond in which they began were there, too.
        .withColumn(
            "concurrency_peak",
            f.greatest("most_running", "came_running", f.when(f.col("releases") > 0, 1).otherwise(0)),
        )
    )
    quiet = f.sequence(f.col("start") + window_ms, f.col("following") - window_ms, f.lit(window_ms))
    is_quiet = (f.col("following") > f.col("start") + window_ms) & (
        (f.col("backlog_end") > 0) | (f.col("running_end") > 0)
    )
    starts = f.when(is_quiet, f.concat(f.array("start"), quiet)).otherwise(f.array("start"))
    spread = levels.withColumn("begun", f.col("start")).withColumn("start", f.explode(starts))
    is_own = f.col("start") == f.col("begun")
    spans = [f"{kind}_{name}_ms" for kind in ("wait", "run") for name in ("p50", "p95", "p99", "max")]
    levels_at_end = {
        "backlog_low": "backlog_end",
        "backlog_peak": "backlog_end",
        "concurrency_peak": "running_end",
    }
    return spread.withColumns(
        {name: f.when(is_own, f.col(name)).otherwise(0) for name in (*COUNTS, *TOTALS, "gaps_too_small")}
        | {name: f.when(is_own, f.col(name)) for name in (*spans, "gap_min_ms")}
        | {name: f.when(is_own, f.col(name)).otherwise(f.col(end)) for name, end in levels_at_end.items()}
    )


def _judged(allowed: DataFrame) -> DataFrame:
    return allowed.withColumn("failures", f.col("deferred") + f.col("expired") + f.col("buried")).withColumn(
        "is_over_cap", f.coalesce(f.col("concurrency_peak") > f.col("max_concurrency"), f.lit(False))
    )
