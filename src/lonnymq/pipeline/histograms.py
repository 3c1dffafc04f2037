"""Distributions of durations as histograms: small, and any number of them can be added.

A histogram is an array of (ms, count), in the order of ms, which is the middle of its bucket. Below 128 ms a
bucket is a single value. Above, the seven most significant bits of a value choose its bucket, so that the
middle is at most 1/128 of the value away. Percentiles of windows cannot be averaged; those of added
histograms are percentiles. The reasons are in decision 18.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

# A percentile is at most this much away from the true one, relative to it.
MAX_ERROR = 1 / 128
PERCENTS = (50, 95, 99)
SIGNIFICANT_BITS = 7


def bucket(ms: Column) -> Column:
    """Return the middle of the bucket of a duration."""
    # One half more than a whole number is never a power of two, so the logarithm need not be exact.
    bits = f.floor(f.log2(ms + f.lit(0.5))) + 1
    width = f.pow(f.lit(2.0), f.greatest(bits - SIGNIFICANT_BITS, f.lit(0))).cast("long")
    return ms - f.pmod(ms, width) + f.floor(width / 2)


def collect(ms: Column, count: Column) -> Column:
    """Aggregate rows that each are a bucket into a histogram; rows whose `ms` is null are left out."""
    return f.array_sort(
        f.collect_list(f.when(ms.isNotNull(), f.struct(ms.alias("ms"), count.alias("count"))))
    )


def add(frame: DataFrame, column: str, *by: str) -> DataFrame:
    """Return one histogram for each group: the sum of those of its rows."""
    return (
        frame.select(*by, f.inline(column))
        .groupBy(*by, "ms")
        .agg(f.sum("count").alias("count"))
        .groupBy(*by)
        .agg(collect(f.col("ms"), f.col("count")).alias(column))
    )


def percentile(histogram: Column, percent: int) -> Column:
    """Return a percentile: the smallest duration that this share of the values does not exceed, or null."""
    total = f.aggregate(histogram, f.lit(0).cast("long"), lambda seen, one: seen + one["count"])
    rank = f.ceil(total * percent / 100)
    begin = f.struct(f.lit(0).cast("long").alias("seen"), f.lit(None).cast("long").alias("ms"))

    def step(found: Column, one: Column) -> Column:
        after = f.struct((found["seen"] + one["count"]).alias("seen"), one["ms"].alias("ms"))
        return f.when(found["seen"] >= rank, found).otherwise(after)

    return f.when(f.size(histogram) > 0, f.aggregate(histogram, begin, step, lambda found: found["ms"]))
