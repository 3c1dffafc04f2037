"""Converts histories to frames, and frames to rows that can be compared."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.pipeline.reference_windows import DAY_MS, Attempt, ReferencePolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)


def day_of(ms: int) -> date:
    return (EPOCH + timedelta(days=ms // DAY_MS)).date()


def attempts_frame(spark: "SparkSession", history: Iterable[Attempt]) -> "DataFrame":
    from lonnymq.pipeline import schemas

    rows = [
        (
            number,
            number,
            10**6 + number if one.message is None else one.message,
            one.channel,
            one.outcome,
            one.attempt,
            timestamp(one.created),
            timestamp(one.dequeue),
            timestamp(one.leased),
            timestamp(one.ended),
            "worker",
            None,
            10,
            None,
            None,
            None,
            day_of(one.ended),
        )
        for number, one in enumerate(history)
    ]
    return spark.createDataFrame(rows, schemas.ATTEMPTS)


def policies_frame(
    spark: "SparkSession", policies: Iterable[ReferencePolicy], day: date = date(1970, 1, 1)
) -> "DataFrame":
    return dated_policies_frame(spark, [(day, one) for one in policies])


def dated_policies_frame(
    spark: "SparkSession", policies: Iterable[tuple[date, ReferencePolicy]]
) -> "DataFrame":
    from lonnymq.pipeline import schemas

    rows = [
        {
            "channel": one.channel,
            "weight": one.weight,
            "max_concurrency": one.max_concurrency,
            "release_interval_ms": one.interval,
            "release_burst": one.burst,
            "is_paused": False,
            "day": day,
        }
        for day, one in policies
    ]
    return spark.createDataFrame(rows, schemas.POLICIES)


def by_window(frame: "DataFrame") -> dict[tuple[str, int], dict[str, Any]]:
    """Return the rows of `windows` by channel and start in milliseconds, without the columns of the key."""
    from pyspark.sql import functions as f

    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in frame.withColumn("start", f.unix_millis("window_start")).collect():
        values = row.asDict()
        assert values.pop("day") == day_of(values["start"])
        for name in ("window_start", "window_s"):
            values.pop(name)
        key = (values.pop("channel"), values.pop("start"))
        assert key not in found
        found[key] = values
    return found
