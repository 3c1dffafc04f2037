"""Channels' policies over time."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from lonnymq.model import POLICY_FIELDS

FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
# The policy fields that the figures of windows depend on.
WINDOW_FIELDS = ("weight", "max_concurrency", "release_interval_ms", "release_burst")


def policy_periods(policies: DataFrame) -> DataFrame:
    """Return each policy with the days it applies to: from its day until the next known one.

    The oldest known policy also applies to the time before it.
    """
    by_day = Window.partitionBy("channel").orderBy("day")
    previous = f.lag("day").over(by_day)
    return policies.select(
        "channel",
        *POLICY_FIELDS,
        f.when(previous.isNull(), f.lit(FIRST_DAY).cast("date")).otherwise(f.col("day")).alias("from_day"),
        f.coalesce(f.lead("day").over(by_day), f.lit(LAST_DAY).cast("date")).alias("until_day"),
    )


def rate_limits(policies: DataFrame) -> DataFrame:
    """Return the policies with a rate limit: few enough to be broadcast."""
    return (
        policy_periods(policies)
        .where(f.col("release_interval_ms").isNotNull())
        .select("channel", "from_day", "until_day", "release_interval_ms", "release_burst")
    )


def join_policies(frame: DataFrame, policies: DataFrame) -> DataFrame:
    """Add to a frame of channels and days the policy of each channel on that day."""
    periods = policy_periods(policies).select(
        f.col("channel").alias("policy_channel"), *WINDOW_FIELDS, "from_day", "until_day"
    )
    applies = (
        (f.col("channel") == f.col("policy_channel"))
        & (f.col("day") >= f.col("from_day"))
        & (f.col("day") < f.col("until_day"))
    )
    return (
        frame.join(periods, applies, "left")
        .withColumn("weight", f.coalesce("weight", f.lit(1)))
        .withColumn("release_burst", f.coalesce("release_burst", f.lit(1)))
        .drop("policy_channel", "from_day", "until_day")
    )
