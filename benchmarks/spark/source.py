"""Writing and reading with the Spark source, compared with plain COPY and with Spark's JDBC connector."""

import time
import uuid
from functools import partial

import psycopg
from pyspark.sql import DataFrame

from benchmarks.harness import Row
from benchmarks.spark.spark_harness import CHANNELS, PARTITIONS, Measurements, SparkHarness
from lonnymq import NewMessage, Queue

WRITE = "batch write, atomic, until visible and in fair order"
READ = "batch read of history"
FOLLOW = "history stream, availableNow"


def write(harness: SparkHarness) -> list[Row]:
    measurements: Measurements = {
        "spark": partial(_write, harness),
        "copy_in": partial(_copy_in, harness),
    }
    if harness.jdbc:
        measurements["jdbc"] = partial(_write_jdbc, harness)
    rates = harness.measure_in_turns("spark-write", measurements)
    rows = [Row("spark-write", WRITE, "copy_in", "rows/s", rates["spark"], rates["copy_in"], at_least=0.6)]
    if "jdbc" in rates:
        rows.append(Row("spark-write", WRITE, "jdbc", "rows/s", rates["spark"], rates["jdbc"], at_least=0.8))
    return rows


def _write(harness: SparkHarness) -> float:
    frame = harness.messages()
    with harness.queue() as dsn:
        began_at = time.monotonic()
        options = {"dsn": dsn, "job": str(uuid.uuid4())}
        frame.write.format("lonnymq").options(**options).mode("append").save()
        took_s = time.monotonic() - began_at
        _check(dsn, harness.size.rows)
    return harness.size.rows / took_s


def _check(dsn: str, rows: int) -> None:
    """Check that all messages are visible, and that turns of many channels give the first 100."""
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (rows,)
    with Queue(dsn) as queue:
        served = {message.channel for message in queue.dequeue(limit=100)}
        assert len(served) == 100 / queue.set().quantum, served


def _copy_in(harness: SparkHarness) -> float:
    # 100 bytes including the quotes.
    payload = "x" * 98
    rows = harness.size.rows
    with harness.queue() as dsn, Queue(dsn) as queue:
        began_at = time.monotonic()
        queue.copy_in(NewMessage(channel=f"channel-{n % CHANNELS}", payload=payload) for n in range(rows))
        return rows / (time.monotonic() - began_at)


def _write_jdbc(harness: SparkHarness) -> float:
    """Write with JDBC into a table with one index, in batches: not atomic, and not a queue."""
    frame = harness.messages()
    with harness.queue() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "create table plain (id bigint generated always as identity, channel text, content bytea,"
                " dequeue_at bigint default 0)"
            )
            connection.execute("create index on plain (channel, dequeue_at, id)")
        began_at = time.monotonic()
        options = {"url": harness.jdbc_url(dsn), "dbtable": "plain", "batchsize": "10000"}
        frame.write.format("jdbc").options(**options, driver="org.postgresql.Driver").mode("append").save()
        return harness.size.rows / (time.monotonic() - began_at)


def read(harness: SparkHarness) -> list[Row]:
    with harness.queue(harness.size.rows) as dsn:
        assert _history(harness, dsn).count() == harness.size.rows
        measurements: Measurements = {
            "spark": partial(_read, harness, dsn),
            "stream": partial(_follow, harness, dsn),
        }
        if harness.jdbc:
            measurements["jdbc"] = partial(_read_jdbc, harness, dsn)
        rates = harness.measure_in_turns("spark-read", measurements)
    rows = []
    if "jdbc" in rates:
        rows.append(Row("spark-read", READ, "jdbc", "rows/s", rates["spark"], rates["jdbc"], at_least=0.75))
    note = "or 100,000 rows/s"
    is_fast = rates["stream"] >= 100_000
    return [
        *rows,
        Row("spark-stream", FOLLOW, None, "rows/s", rates["stream"], at_least=100_000)
        if is_fast
        else Row(
            "spark-stream",
            FOLLOW,
            "batch read",
            "rows/s",
            rates["stream"],
            rates["spark"],
            at_least=0.5,
            note=note,
        ),
    ]


def _read(harness: SparkHarness, dsn: str) -> float:
    began_at = time.monotonic()
    _history(harness, dsn).write.format("noop").mode("overwrite").save()
    return harness.size.rows / (time.monotonic() - began_at)


def _history(harness: SparkHarness, dsn: str) -> DataFrame:
    options = {"dsn": dsn, "table": "history", "rows_per_partition": str(-(-harness.size.rows // PARTITIONS))}
    return harness.spark.read.format("lonnymq").options(**options).load()


def _read_jdbc(harness: SparkHarness, dsn: str) -> float:
    options = {"url": harness.jdbc_url(dsn), "dbtable": "lonnymq.history", "driver": "org.postgresql.Driver"}
    options |= {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(harness.size.rows)}
    options |= {"numPartitions": str(PARTITIONS), "fetchsize": "10000"}
    began_at = time.monotonic()
    harness.spark.read.format("jdbc").options(**options).load().write.format("noop").mode("overwrite").save()
    return harness.size.rows / (time.monotonic() - began_at)


def _follow(harness: SparkHarness, dsn: str) -> float:
    name = uuid.uuid4().hex
    options = {"dsn": dsn, "table": "history", "reader": name, "max_rows": str(-(-harness.size.rows // 4))}
    began_at = time.monotonic()
    query = (
        harness.spark.readStream.format("lonnymq")
        .options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(harness.directory / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    took_s = time.monotonic() - began_at
    read_rows = sum(progress.numInputRows for progress in query.recentProgress)
    assert read_rows == harness.size.rows, read_rows
    return harness.size.rows / took_s
