"""Forecasts each channel's backlog, assuming that recent rates continue."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lonnymq.errors import invalid
from lonnymq.pipeline import schemas

HOUR_S = 3600
HORIZONS = {"backlog_in_1_hour": 1, "backlog_in_6_hours": 6, "backlog_in_24_hours": 24}


def forecast(windows: DataFrame, waiting: DataFrame, *, until: datetime, over_s: int = HOUR_S) -> DataFrame:
    """Return the rows of the lake's table `forecast`, computed from its tables `windows` and `waiting`.

    History contains only attempts that have ended; `waiting` contains the other messages. Arrived messages
    are those that became due in the `over_s` seconds before `until`, ended or not. Served messages were
    completed, buried or cancelled in that time. The backlog is what was due and not leased at `until`; it is
    assumed to keep growing or shrinking by the difference.
    """
    if until.tzinfo is None:
        raise invalid("until", until, "a time with its time zone")
    if over_s < 1:
        raise invalid("over_s", over_s, "at least 1")
    end = f.timestamp_millis(f.lit(round(until.timestamp() * 1000)))
    begin = f.timestamp_millis(f.lit(round((until.timestamp() - over_s) * 1000)))
    ended = windows.where((f.col("window_start") >= begin) & (f.col("window_start") < end)).select(
        "channel",
        f.col("arrivals").alias("arrived"),
        (f.col("completed") + f.col("buried") + f.col("cancelled")).alias("served"),
        f.lit(0).alias("backlog"),
    )
    is_recent = f.col("due_at") >= begin
    live = waiting.where(f.col("due_at") < end).select(
        "channel",
        f.when(is_recent, f.col("messages")).otherwise(0).alias("arrived"),
        f.lit(0).alias("served"),
        (f.col("messages") - f.col("leased")).alias("backlog"),
    )
    totals = (
        ended.unionByName(live)
        .groupBy("channel")
        .agg(*(f.sum(name).alias(name) for name in ("arrived", "served", "backlog")))
    )
    net_per_s = (f.col("arrived") - f.col("served")) / f.lit(over_s)
    frame = (
        totals.withColumn("until", end)
        .withColumn("over_s", f.lit(over_s))
        .withColumn("arrivals_per_hour", f.col("arrived") * HOUR_S / f.lit(over_s))
        .withColumn("served_per_hour", f.col("served") * HOUR_S / f.lit(over_s))
        .withColumns({name: _after(net_per_s, hours) for name, hours in HORIZONS.items()})
        .withColumn(
            "empty_in_s",
            f.when(f.col("backlog") == 0, 0).when(net_per_s < 0, f.ceil(f.col("backlog") / -net_per_s)),
        )
        .withColumn("day", schemas.day_of("until"))
    )
    return schemas.conform(frame, schemas.FORECAST)


def _after(net_per_s: Column, hours: int) -> Column:
    return f.greatest(f.round(f.col("backlog") + net_per_s * (hours * HOUR_S)), f.lit(0.0))
