"""The columns of the lake's tables. Times and days are UTC."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lonnymq.model import POLICY_FIELDS

DAY_MS = 86_400_000

Columns = tuple[tuple[str, DataType], ...]


def _struct(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


_LONG, _TEXT, _TIME, _REAL = LongType(), StringType(), TimestampType(), DoubleType()

# A distribution of durations; see histograms.
HISTOGRAM = ArrayType(_struct(("ms", _LONG), ("count", _LONG)))

# A finished attempt as in history; `day`, the day of its end, is the partition.
ATTEMPTS = _struct(
    ("id", _LONG),
    ("xid", _LONG),
    ("message_id", _LONG),
    ("channel", _TEXT),
    ("outcome", _TEXT),
    ("attempt", IntegerType()),
    ("created_at", _TIME),
    ("dequeue_at", _TIME),
    ("leased_at", _TIME),
    ("ended_at", _TIME),
    ("worker", _TEXT),
    ("error", _TEXT),
    ("content_bytes", IntegerType()),
    ("content", BinaryType()),
    ("state", BinaryType()),
    ("headers", _TEXT),
    ("day", DateType()),
)

# A channel's policy, as last seen on that day.
_POLICY_TYPES = {"integer": IntegerType(), "bigint": _LONG, "boolean": BooleanType()}
POLICIES = _struct(
    ("channel", _TEXT),
    *((field.name, _POLICY_TYPES[field.sql_type]) for field in POLICY_FIELDS.values()),
    ("day", DateType()),
)

# The messages that had not ended when the archive last ran, by channel and due time.
WAITING = _struct(
    ("channel", _TEXT),
    ("due_at", _TIME),
    ("messages", _LONG),
    ("leased", _LONG),
    ("taken_at", _TIME),
    ("day", DateType()),
)

# One channel in one window.
WINDOWS = _struct(
    ("channel", _TEXT),
    ("window_start", _TIME),
    ("window_s", IntegerType()),
    ("arrivals", _LONG),
    ("releases", _LONG),
    ("retries", _LONG),
    ("completed", _LONG),
    ("deferred", _LONG),
    ("expired", _LONG),
    ("buried", _LONG),
    ("cancelled", _LONG),
    ("failures", _LONG),
    ("wait_p50_ms", _LONG),
    ("wait_p95_ms", _LONG),
    ("wait_p99_ms", _LONG),
    ("wait_max_ms", _LONG),
    ("wait_total_ms", _LONG),
    ("wait_histogram", HISTOGRAM),
    ("run_p50_ms", _LONG),
    ("run_p95_ms", _LONG),
    ("run_p99_ms", _LONG),
    ("run_max_ms", _LONG),
    ("run_total_ms", _LONG),
    ("run_histogram", HISTOGRAM),
    ("backlog_low", _LONG),
    ("backlog_peak", _LONG),
    ("backlog_end", _LONG),
    ("concurrency_peak", _LONG),
    ("max_concurrency", IntegerType()),
    ("is_over_cap", BooleanType()),
    ("gap_min_ms", _LONG),
    ("gaps_too_small", _LONG),
    ("release_interval_ms", _LONG),
    ("release_burst", IntegerType()),
    ("weight", IntegerType()),
    ("share", _REAL),
    ("entitled_share", _REAL),
    ("excess_share", _REAL),
    ("others_wait_ms", _LONG),
    ("blame_ms", _REAL),
    ("day", DateType()),
)

# All channels together in one window.
FAIRNESS = _struct(
    ("window_start", _TIME),
    ("window_s", IntegerType()),
    ("channels", _LONG),
    ("releases", _LONG),
    ("hungry_channels", _LONG),
    ("jain_index", _REAL),
    ("noisiest_channel", _TEXT),
    ("noisiest_excess_share", _REAL),
    ("noisiest_blame_ms", _REAL),
    ("day", DateType()),
)

# Why the messages of one channel waited, by the hour in which they were leased; see reasons.
REASONS = _struct(
    ("channel", _TEXT),
    ("hour", _TIME),
    ("releases", _LONG),
    ("entitled_releases", _REAL),
    ("own_cap_ms", _LONG),
    ("own_rate_limit_ms", _LONG),
    ("own_burst_ms", _LONG),
    ("noisy_neighbour_ms", _LONG),
    ("busy_workers_ms", _LONG),
    ("blame_ms", _REAL),
    ("day", DateType()),
)

# The course of a channel's backlog if recent rates continue.
FORECAST = _struct(
    ("channel", _TEXT),
    ("until", _TIME),
    ("over_s", _LONG),
    ("backlog", _LONG),
    ("arrived", _LONG),
    ("served", _LONG),
    ("arrivals_per_hour", _REAL),
    ("served_per_hour", _REAL),
    ("backlog_in_1_hour", _LONG),
    ("backlog_in_6_hours", _LONG),
    ("backlog_in_24_hours", _LONG),
    ("empty_in_s", _LONG),
    ("day", DateType()),
)

# Rows of files that could not become messages.
REJECTED = _struct(
    ("job", _TEXT),
    ("source_file", _TEXT),
    ("reason", _TEXT),
    ("record", _TEXT),
    ("day", DateType()),
)


def day_of(time: str | Column) -> Column:
    """The UTC day of a time, whatever the session's time zone."""
    column = f.col(time) if isinstance(time, str) else time
    return f.date_from_unix_date(f.floor(f.unix_millis(column) / f.lit(DAY_MS)).cast("int"))


def day_of_ms(time_ms: Column) -> Column:
    """The UTC day of a time in milliseconds since 1970."""
    return f.date_from_unix_date(f.floor(time_ms / f.lit(DAY_MS)).cast("int"))


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """Select exactly the columns of a table, in its order and with its types."""
    return frame.select(*(f.col(field.name).cast(field.dataType).alias(field.name) for field in schema))


def attempts_from_history(history: DataFrame) -> DataFrame:
    """Return history in the form of the lake's table `attempts`, with the day of each attempt's end."""
    return conform(history.withColumn("day", day_of("ended_at")), ATTEMPTS)
