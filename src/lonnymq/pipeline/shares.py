"""Computes each channel's share of the service, compared with its weight, and what excess cost others."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from lonnymq.pipeline import schemas


def add_shares(windows: DataFrame) -> DataFrame:
    """Add shares and blame to rows of channels in windows.

    The share is of all releases in the window; the entitled share is of the weights of all channels that had
    something to do. Blame is the excess of the first over the second, multiplied by the waiting time of the
    other channels that have no limit of their own and did not exceed their share either.
    """
    # All channels of a window: few rows, whatever the number of attempts.
    all_channels = Window.partitionBy("day", "start")
    releases = f.sum("releases").over(all_channels)
    weights = f.sum(f.when(_is_active(), f.col("weight")).otherwise(0)).over(all_channels)
    is_victim = _is_unlimited() & (f.col("share") <= f.col("entitled_share"))
    wait = f.when(is_victim, f.col("wait_total_ms")).otherwise(0)
    return (
        windows.withColumn("share", f.when(releases > 0, f.col("releases") / releases).otherwise(0.0))
        .withColumn("entitled_share", f.when(_is_active(), f.col("weight") / weights).otherwise(0.0))
        .withColumn("excess_share", f.greatest(f.col("share") - f.col("entitled_share"), f.lit(0.0)))
        .withColumn("others_wait_ms", f.sum(wait).over(all_channels) - wait)
        .withColumn("blame_ms", f.col("excess_share") * f.col("others_wait_ms"))
    )


def fairness(windows: DataFrame) -> DataFrame:
    """Return the rows of the lake's table `fairness`, computed from its table `windows`.

    Jain's index is computed over releases per weight of hungry channels: those that had messages waiting
    throughout the window and have no cap or rate limit. With fewer than two of them it is null.
    """
    is_hungry = (f.col("backlog_low") > 0) & _is_unlimited()
    served = f.when(is_hungry, f.col("releases") / f.col("weight"))
    squares = f.sum(served * served)
    hungry = f.count_if(is_hungry)
    worst = f.max_by(f.struct("channel", "excess_share", "blame_ms"), f.struct("blame_ms", "channel"))
    frame = (
        windows.groupBy("day", "window_start", "window_s")
        .agg(
            f.count_if(_is_active()).alias("channels"),
            f.sum("releases").alias("releases"),
            hungry.alias("hungry_channels"),
            f.when((hungry > 1) & (squares > 0), f.pow(f.sum(served), 2) / (hungry * squares)).alias(
                "jain_index"
            ),
            worst.alias("worst"),
        )
        .withColumn("noisiest_channel", f.when(f.col("worst.blame_ms") > 0, f.col("worst.channel")))
        .withColumn("noisiest_excess_share", f.when(f.col("worst.blame_ms") > 0, f.col("worst.excess_share")))
        .withColumn("noisiest_blame_ms", f.col("worst.blame_ms"))
    )
    return schemas.conform(frame, schemas.FAIRNESS)


def _is_active() -> Column:
    return (f.col("releases") > 0) | (f.col("backlog_peak") > 0)


def _is_unlimited() -> Column:
    return f.col("max_concurrency").isNull() & f.col("release_interval_ms").isNull()
