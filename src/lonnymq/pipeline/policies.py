"""What channels were allowed, and when."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from lonnymq.model import POLICY_FIELDS

FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
# The fields by which windows are judged.
JUDGED_BY = ("weight", "max_concurrency", "release_interval_ms", "release_burst")


def in_force(policies: DataFrame) -> DataFrame:
    """Each policy with the days it counts for: from the day it was seen until the next one was.

    The oldest that is known counts for the time before, too.
    """
    seen = Window.partitionBy("channel").orderBy("day")
    before = f.lag("day").over(seen)
    return policies.select(
        "channel",
        *POLICY_FIELDS,
        f.when(before.isNull(), f.lit(FIRST_DAY).cast("date")).otherwise(f.col("day")).alias("from_day"),
        f.coalesce(f.lead("day").over(seen), f.lit(LAST_DAY).cast("date")).alias("until_day"),
    )


def limits(policies: DataFrame) -> DataFrame:
    """Those that limit the rate: few, and small enough to be sent everywhere."""
    return (
        in_force(policies)
        .where(f.col("release_interval_ms").isNotNull())
        .select("channel", "from_day", "until_day", "release_interval_ms", "release_burst")
    )


def allowed(frame: DataFrame, policies: DataFrame) -> DataFrame:
    """A frame of channels and days, with what each was allowed on that day."""
    rules = in_force(policies).select(f.col("channel").alias("ruled"), *JUDGED_BY, "from_day", "until_day")
    is_ruled = (
        (f.col("channel") == f.col("ruled"))
        & (f.col("day") >= f.col("from_day"))
        & (f.col("day") < f.col("until_day"))
    )
    return (
        frame.join(rules, is_ruled, "left")
        .withColumn("weight", f.coalesce("weight", f.lit(1)))
        .withColumn("release_burst", f.coalesce("release_burst", f.lit(1)))
        .drop("ruled", "from_day", "until_day")
    )
