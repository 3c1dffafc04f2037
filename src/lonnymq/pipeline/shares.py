"""Who had how much of the service, against what was theirs, and at whose cost."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from lonnymq.pipeline import schemas


def with_shares(windows: DataFrame) -> DataFrame:
    """Add shares and blame to rows of channels in windows.

    Share: of all releases in the window. Entitled share: of the weights of all channels that had something
    to do then. Blame: the excess of one over the other, times what others waited who neither have a limit of
    their own to wait for, nor had more than their share themselves.
    """
    # All channels of a window; small, whatever the number of attempts.
    together = Window.partitionBy("day", "start")
    releases = f.sum("releases").over(together)
    weights = f.sum(f.when(_is_active(), f.col("weight")).otherwise(0)).over(together)
    is_victim = _is_unlimited() & (f.col("share") <= f.col("entitled_share"))
    wait = f.when(is_victim, f.col("wait_total_ms")).otherwise(0)
    return (
        windows.withColumn("share", f.when(releases > 0, f.col("releases") / releases).otherwise(0.0))
        .withColumn("entitled_share", f.when(_is_active(), f.col("weight") / weights).otherwise(0.0))
        .withColumn("excess_share", f.greatest(f.col("share") - f.col("entitled_share"), f.lit(0.0)))
        .withColumn("others_wait_ms", f.sum(wait).over(together) - wait)
        .withColumn("blame_ms", f.col("excess_share") * f.col("others_wait_ms"))
    )


def fairness(windows: DataFrame) -> DataFrame:
    """Return the lake's table `fairness` of the table `windows`.

    Jain's index is over releases per weight of the channels that were hungry: they had messages waiting all
    the window long, and no cap or rate of their own. With fewer than two of them there was nothing to
    divide.
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
    return schemas.conformed(frame, schemas.FAIRNESS)


def _is_active() -> Column:
    return (f.col("releases") > 0) | (f.col("backlog_peak") > 0)


def _is_unlimited() -> Column:
    return f.col("max_concurrency").isNull() & f.col("release_interval_ms").isNull()
