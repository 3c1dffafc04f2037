"""Writing and reading, against plain COPY and Spark's JDBC."""

import time
import uuid
from functools import partial

import psycopg
from pyspark.sql import DataFrame

from benchmarks.bench import Row
from benchmarks.spark.ground import CHANNELS, PARTITIONS, Ground, Measured
from lonnymq import NewMessage, Queue

WRITE = "batch write, atomic, visible and fair at the end"
READ = "batch read of history"
FOLLOW = "history stream, AvailableNow"


def write(ground: Ground) -> list[Row]:
    measured: Measured = {
        "spark": partial(_write, ground),
        "copy_in": partial(_copy_in, ground),
    }
    if ground.jdbc:
        measured["jdbc"] = partial(_write_jdbc, ground)
    rates = ground.interleaved("spark-write", measured)
    rows = [Row("spark-write", WRITE, "copy_in", "rows/s", rates["spark"], rates["copy_in"], at_least=0.6)]
    if "jdbc" in rates:
        rows.append(Row("spark-write", WRITE, "jdbc", "rows/s", rates["spark"], rates["jdbc"], at_least=0.8))
    return rows


def _write(ground: Ground) -> float:
    frame = ground.messages()
    with ground.queue() as dsn:
        began_at = time.monotonic()
        options = {"dsn": dsn, "job": str(uuid.uuid4())}
        frame.write.format("lonnymq").options(**options).mode("append").save()
        took_s = time.monotonic() - began_at
        _check(dsn, ground.size.rows)
    return ground.size.rows / took_s


def _check(dsn: str, rows: int) -> None:
    """All there, and a hundred messages come of a hundred channels."""
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from lonnymq.message").fetchone() == (rows,)
    with Queue(dsn) as queue:
        served = {message.channel for message in queue.dequeue(limit=100)}
    assert len(served) == 100, served


def _copy_in(ground: Ground) -> float:
    # With its quotes, 100 bytes.
    payload = "x" * 98
    rows = ground.size.rows
    with ground.queue() as dsn, Queue(dsn) as queue:
        began_at = time.monotonic()
        queue.copy_in(NewMessage(channel=f"channel-{n % CHANNELS}", payload=payload) for n in range(rows))
        return rows / (time.monotonic() - began_at)


def _write_jdbc(ground: Ground) -> float:
    """Into a table with one index, in batches: not atomic, and nobody is served of it."""
    frame = ground.messages()
    with ground.queue() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "create table plain (id bigint generated always as identity, channel text, content bytea,"
                " dequeue_at bigint default 0)"
            )
            connection.execute("create index on plain (channel, dequeue_at, id)")
        began_at = time.monotonic()
        options = {"url": ground.jdbc_url(dsn), "dbtable": "plain", "batchsize": "10000"}
        frame.write.format("jdbc").options(**options, driver="org.postgresql.Driver").mode("append").save()
        return ground.size.rows / (time.monotonic() - began_at)


def read(ground: Ground) -> list[Row]:
    with ground.queue(ground.size.rows) as dsn:
        assert _history(ground, dsn).count() == ground.size.rows
        measured: Measured = {
            "spark": partial(_read, ground, dsn),
            "stream": partial(_follow, ground, dsn),
        }
        if ground.jdbc:
            measured["jdbc"] = partial(_read_jdbc, ground, dsn)
        rates = ground.interleaved("spark-read", measured)
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


def _read(ground: Ground, dsn: str) -> float:
    began_at = time.monotonic()
    _history(ground, dsn).write.format("noop").mode("overwrite").save()
    return ground.size.rows / (time.monotonic() - began_at)


def _history(ground: Ground, dsn: str) -> DataFrame:
    options = {"dsn": dsn, "table": "history", "rows_per_partition": str(-(-ground.size.rows // PARTITIONS))}
    return ground.spark.read.format("lonnymq").options(**options).load()


def _read_jdbc(ground: Ground, dsn: str) -> float:
    options = {"url": ground.jdbc_url(dsn), "dbtable": "lonnymq.history", "driver": "org.postgresql.Driver"}
    options |= {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(ground.size.rows)}
    options |= {"numPartitions": str(PARTITIONS), "fetchsize": "10000"}
    began_at = time.monotonic()
    ground.spark.read.format("jdbc").options(**options).load().write.format("noop").mode("overwrite").save()
    return ground.size.rows / (time.monotonic() - began_at)


def _follow(ground: Ground, dsn: str) -> float:
    name = uuid.uuid4().hex
    options = {"dsn": dsn, "table": "history", "reader": name, "max_rows": str(-(-ground.size.rows // 4))}
    began_at = time.monotonic()
    query = (
        ground.spark.readStream.format("lonnymq")
        .options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(ground.directory / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    took_s = time.monotonic() - began_at
    read_rows = sum(progress.numInputRows for progress in query.recentProgress)
    assert read_rows == ground.size.rows, read_rows
    return ground.size.rows / took_s
