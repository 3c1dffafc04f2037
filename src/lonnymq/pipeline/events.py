"""Attempts as events on a line of time, one line per channel and day.

An attempt waits from when it was due until it was leased, and runs from then until it ended; both intervals
are half open. What is under way at midnight is carried into the next day by an event of its own, so that
each day can be computed by itself. An attempt that was cancelled was never leased: it waits until its end.
"""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.pipeline.schemas import DAY_MS, day_of_ms

NO_LONG = "cast(null as bigint)"


def spans(attempts: DataFrame) -> DataFrame:
    """Each attempt in milliseconds: when it was due, leased, and ended; clocks that went back are mended."""
    due = f.greatest(f.unix_millis("created_at"), f.unix_millis("dequeue_at"))
    leased = f.unix_millis("leased_at")
    return (
        attempts.select(
            "channel",
            "outcome",
            "attempt",
            due.alias("due"),
            leased.alias("leased"),
            f.unix_millis("ended_at").alias("ended"),
        )
        .withColumn("due", f.least("due", "leased"))
        .withColumn("ended", f.greatest("ended", "leased"))
    )


def days_touched(attempts: DataFrame) -> DataFrame:
    """The days whose figures depend on these attempts, each once.

    The day after counts too: a release just before midnight may be too near to the first of that day.
    """
    days = _days(f.least("due", "ended"), f.col("ended") + DAY_MS)
    return spans(attempts).select(f.explode(days).alias("day")).distinct()


def touching(attempts: DataFrame, days: Sequence[date]) -> DataFrame:
    """The attempts of which the figures of these days depend."""
    if not days:
        return attempts.limit(0)
    first, last = min(days), max(days)
    ended, begun = f.col("ended_at"), f.least("created_at", "ended_at")
    since = f.timestamp_millis(f.unix_date(f.lit(first)).cast("long") * DAY_MS - DAY_MS)
    until = f.timestamp_millis(f.unix_date(f.lit(last)).cast("long") * DAY_MS + DAY_MS)
    return attempts.where((ended >= since) & (begun < until))


def events(attempts: DataFrame, limits: DataFrame) -> DataFrame:
    """What happens, with the day on whose line it is drawn.

    `limits` are the release intervals in force: channel, from_day, until_day, release_interval_ms,
    release_burst. A release that is nearer to the next midnight than its channel's interval is also drawn,
    as context, on the line of the next day.
    """
    known = spans(attempts)
    next_day = f.date_add(day_of_ms(f.coalesce("leased", "ended")), 1)
    narrow = f.broadcast(limits.withColumnRenamed("channel", "limited"))
    is_limited = (
        (f.col("channel") == f.col("limited"))
        & (next_day >= f.col("from_day"))
        & (next_day < f.col("until_day"))
    )
    told = known.join(narrow, is_limited, "left")
    return told.select("channel", f.inline(f.concat(_own_events(), _carried(), _context())))


def _event(
    time: Column,
    *,
    waiting: str = "0",
    running: str = "0",
    arrival: str = "0",
    release: str = NO_LONG,
    wait: str = NO_LONG,
    run: str = NO_LONG,
    retry: str = "0",
    outcome: str = "cast(null as string)",
    day: Column | None = None,
    is_context: bool = False,
) -> Column:
    return f.struct(
        (day_of_ms(time) if day is None else day).alias("day"),
        time.alias("at"),
        f.expr(waiting).cast("int").alias("waiting"),
        f.expr(running).cast("int").alias("running"),
        f.expr(arrival).cast("int").alias("arrival"),
        f.expr(release).alias("release"),
        f.expr(wait).alias("wait"),
        f.expr(run).alias("run"),
        f.expr(retry).cast("int").alias("retry"),
        f.expr(outcome).alias("outcome"),
        f.lit(is_context).alias("is_context"),
    )


def _own_events() -> Column:
    """Up to three: it becomes due, it is leased, it ends. Cancelled before it was due, it never waited."""
    due = _event(
        f.col("due"),
        waiting="1",
        arrival="if(attempt = 0 or (attempt = 1 and leased is not null), 1, 0)",
    )
    leased = _event(
        f.col("leased"),
        waiting="-1",
        running="1",
        release="leased",
        wait="leased - due",
        retry="if(attempt > 1, 1, 0)",
    )
    ended = _event(
        f.col("ended"),
        waiting="if(leased is null and due < ended, -1, 0)",
        running="if(leased is null, 0, -1)",
        run="ended - leased",
        outcome="outcome",
    )
    return (
        f.when(f.col("leased").isNotNull(), f.array(due, leased, ended))
        .when(f.col("due") < f.col("ended"), f.array(due, ended))
        .otherwise(f.array(ended))
    )


def _carried() -> Column:
    """One event for each midnight at which it waits or runs."""
    midnights = _days(f.col("due") + DAY_MS, f.col("ended"))

    def carry(day: Column) -> Column:
        at = f.unix_date(day).cast("long") * DAY_MS
        is_waiting = at <= f.coalesce("leased", "ended")
        return (
            _event(at, day=day)
            .withField("waiting", f.when(is_waiting, 1).otherwise(0))
            .withField("running", f.when(is_waiting, 0).otherwise(1))
        )

    return f.transform(midnights, carry)


def _context() -> Column:
    midnight = (f.floor(f.col("leased") / DAY_MS) + 1) * DAY_MS
    is_near = f.col("leased") + f.col("release_interval_ms") > midnight
    next_day = f.date_add(day_of_ms(f.col("leased")), 1)
    context = _event(f.col("leased"), release="leased", day=next_day, is_context=True)
    return f.when(is_near, f.array(context)).otherwise(f.array())


def _days(first_ms: Column, last_ms: Column) -> Column:
    """The days from one time to another, or none if there are none."""
    first, last = day_of_ms(first_ms), day_of_ms(last_ms)
    return f.when(first <= last, f.sequence(first, last)).otherwise(f.array().cast("array<date>"))
