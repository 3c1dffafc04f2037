"""Why messages waited, at one resolution whatever the length of the windows that are shown.

In a longer window nearly every channel reaches its cap or exceeds its share at some moment, so a verdict for
a whole window would change with the window's length. It is therefore given for each minute, and added up.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.pipeline import schemas
from lonnymq.pipeline.shares import fairness

# The windows for which verdicts are given.
RESOLUTION_S = 60
# A tenant is a noisy neighbour if its share of all releases exceeds its entitled share by this much.
NOISY_EXCESS_SHARE = 0.25
HOUR_MS = 3_600_000
# The columns of the lake's table `reasons`.
OWN_CAP, OWN_RATE_LIMIT, OWN_BURST = "own_cap_ms", "own_rate_limit_ms", "own_burst_ms"
NOISY_NEIGHBOUR, BUSY_WORKERS = "noisy_neighbour_ms", "busy_workers_ms"
REASONS = (OWN_CAP, OWN_RATE_LIMIT, OWN_BURST, NOISY_NEIGHBOUR, BUSY_WORKERS)


def reasons(minutes: DataFrame) -> DataFrame:
    """Return the rows of the lake's table `reasons`, computed from windows of one minute."""
    names = ("window_start", "noisiest_channel", "noisiest_excess_share")
    noisiest = fairness(minutes).select(*names, f.col("releases").alias("all_releases"))
    start = f.unix_millis("window_start")
    frame = (
        minutes.join(noisiest, "window_start", "left")
        .withColumn("reason", _reason())
        .withColumn("hour", f.timestamp_millis(start - f.pmod(start, f.lit(HOUR_MS))))
        .groupBy("channel", "day", "hour")
        .agg(
            f.sum("releases").alias("releases"),
            f.sum(f.col("entitled_share") * f.col("all_releases")).alias("entitled_releases"),
            *(
                f.sum(f.when(f.col("reason") == reason, f.col("wait_total_ms")).otherwise(0)).alias(reason)
                for reason in REASONS
            ),
            f.sum("blame_ms").alias("blame_ms"),
        )
    )
    return schemas.conform(frame, schemas.REASONS)


def _reason() -> Column:
    """Why the messages that were leased in a minute had waited: the first reason that applies."""
    is_capped = f.col("concurrency_peak") >= f.col("max_concurrency")
    is_limited = f.col("gap_min_ms") < f.col("release_interval_ms") * 2
    has_noisy_neighbour = (f.col("noisiest_channel") != f.col("channel")) & (
        f.col("noisiest_excess_share") >= NOISY_EXCESS_SHARE
    )
    return (
        f.when(is_capped, f.lit(OWN_CAP))
        .when(is_limited, f.lit(OWN_RATE_LIMIT))
        .when((f.col("excess_share") > 0) & (f.col("backlog_low") > 0), f.lit(OWN_BURST))
        .when(has_noisy_neighbour, f.lit(NOISY_NEIGHBOUR))
        .otherwise(f.lit(BUSY_WORKERS))
    )
