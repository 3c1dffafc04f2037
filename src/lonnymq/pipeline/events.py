"""Turns attempts into events on timelines, one timeline per channel and day.

A message waits from when it was due until it was leased, and runs from then until its attempt ended; both
intervals are half-open. A message that is tried again waits from when it is due again, but not while an
earlier attempt of it waits or runs. An attempt that waits or runs at midnight is carried into the next day by
an extra event, so that each day can be computed by itself. A cancelled attempt was never leased: it waits
until its end.
"""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.pipeline.schemas import DAY_MS, day_of_ms

NULL_LONG = "cast(null as bigint)"
# After an attempt with one of these outcomes, the message is usually tried again.
TRIED_AGAIN = ("deferred", "expired")
# After a failover, ids may be issued again: with the time of creation they are unique (decision 15).
MESSAGE = ("channel", "message_id", "created_at")


def attempt_times(attempts: DataFrame) -> DataFrame:
    """Return when each attempt was due, leased and ended, in milliseconds; corrects clocks that went back."""
    due = f.greatest(f.unix_millis("created_at"), f.unix_millis("dequeue_at"))
    leased = f.unix_millis("leased_at")
    return (
        attempts.select(
            "id",
            *MESSAGE,
            "outcome",
            "attempt",
            due.alias("due"),
            leased.alias("leased"),
            f.unix_millis("ended_at").alias("ended"),
        )
        .withColumn("due", f.least("due", "leased"))
        .withColumn("ended", f.greatest("ended", "leased"))
    )


def earlier_ends(attempts: DataFrame) -> DataFrame:
    """Return when the attempts of each message ended after which it may have been tried again."""
    times = attempt_times(attempts.where(f.col("outcome").isin(*TRIED_AGAIN)))
    ends = f.collect_list(f.struct("ended", "id"))
    return times.groupBy(*(f.col(name).alias(f"earlier_{name}") for name in MESSAGE)).agg(ends.alias("ends"))


def _wait_after_earlier_attempts(times: DataFrame, ends: DataFrame) -> DataFrame:
    """Make each attempt wait from the end of the one before it, if that is later than when it was due.

    After an expired lease the message keeps its place in the queue, so it appears to have been due all the
    time. An expiry may spend no attempt: the number of an attempt does not show whether it is the first.
    """
    is_same = [f.col(name) == f.col(f"earlier_{name}") for name in MESSAGE]
    until = f.coalesce("leased", "ended")

    def is_earlier(end: Column) -> Column:
        return (end["ended"] < until) | ((end["ended"] == until) & (end["id"] < f.col("id")))

    earlier = f.array_max(f.transform(f.filter("ends", is_earlier), lambda end: end["ended"]))
    return (
        times.join(ends, is_same, "left")
        .withColumn("earlier", earlier)
        .withColumn("due", f.greatest("due", "earlier"))
        .withColumn(
            "is_first",
            f.col("earlier").isNull()
            & ((f.col("attempt") == 0) | ((f.col("attempt") == 1) & f.col("leased").isNotNull())),
        )
        .drop("ends", "earlier", *(f"earlier_{name}" for name in MESSAGE))
    )


def first_due_day(attempts: DataFrame) -> date | None:
    """Return the day on which the first of these was due: earlier attempts of their messages ended since."""
    found = attempt_times(attempts).agg(day_of_ms(f.min(f.least("due", "ended"))).alias("day")).first()
    return None if found is None else found.day


def days_affected(attempts: DataFrame) -> DataFrame:
    """Return the days whose figures depend on these attempts, each once.

    This includes the day after: a release just before midnight may be too close to the first one of that day.
    """
    days = _days(f.least("due", "ended"), f.col("ended") + DAY_MS)
    return attempt_times(attempts).select(f.explode(days).alias("day")).distinct()


def attempts_affecting(attempts: DataFrame, days: Sequence[date]) -> DataFrame:
    """Return the attempts on which the figures of these days depend."""
    if not days:
        return attempts.limit(0)
    first, last = min(days), max(days)
    ended = f.col("ended_at")
    since = f.timestamp_millis(f.unix_date(f.lit(first)).cast("long") * DAY_MS - DAY_MS)
    until = f.timestamp_millis(f.unix_date(f.lit(last)).cast("long") * DAY_MS + DAY_MS)
    # The day is that of the end; it is stated as well because it decides which files are read.
    day_before = f.date_sub(f.lit(first), 1)
    # Whichever is earlier, as comparisons with columns: they also decide which parts of files are read.
    has_begun = (f.col("created_at") < until) | (ended < until)
    return attempts.where((f.col("day") >= day_before) & (ended >= since) & has_begun)


def events(attempts: DataFrame, ends: DataFrame, limits: DataFrame) -> DataFrame:
    """Return the events, with the day of the timeline that each belongs to.

    `ends` are the `earlier_ends` of the messages. `limits` are the rate limits in force: channel, from_day,
    until_day, release_interval_ms, release_burst. A release closer to the next midnight than its channel's
    interval also appears on the next day's timeline, as context for the gaps of that day.
    """
    times = _wait_after_earlier_attempts(attempt_times(attempts), ends)
    next_day = f.date_add(day_of_ms(f.coalesce("leased", "ended")), 1)
    small_limits = f.broadcast(limits.withColumnRenamed("channel", "limited"))
    is_limited = (
        (f.col("channel") == f.col("limited"))
        & (next_day >= f.col("from_day"))
        & (next_day < f.col("until_day"))
    )
    limited = times.join(small_limits, is_limited, "left")
    return limited.select("channel", f.inline(f.concat(_own_events(), _carry_events(), _context_event())))


def _event(
    time: Column,
    *,
    waiting: str = "0",
    running: str = "0",
    arrival: str = "0",
    release: str = NULL_LONG,
    wait: str = NULL_LONG,
    run: str = NULL_LONG,
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
    """Up to three events: due, leased, ended. An attempt cancelled before it was due never waited."""
    due = _event(
        f.col("due"),
        waiting="1",
        arrival="if(is_first, 1, 0)",
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


def _carry_events() -> Column:
    """One event for each midnight at which the attempt waits or runs."""
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


def _context_event() -> Column:
    midnight = (f.floor(f.col("leased") / DAY_MS) + 1) * DAY_MS
    is_near = f.col("leased") + f.col("release_interval_ms") > midnight
    next_day = f.date_add(day_of_ms(f.col("leased")), 1)
    context = _event(f.col("leased"), release="leased", day=next_day, is_context=True)
    return f.when(is_near, f.array(context)).otherwise(f.array())


def _days(first_ms: Column, last_ms: Column) -> Column:
    """The days from one time to another; an empty array if the second is earlier."""
    first, last = day_of_ms(first_ms), day_of_ms(last_ms)
    return f.when(first <= last, f.sequence(first, last)).otherwise(f.array().cast("array<date>"))
