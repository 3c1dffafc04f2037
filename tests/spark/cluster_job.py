"""The job that a test submits to a cluster: every operation, with a slow task that Spark copies."""

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lonnymq import Queue
from lonnymq.pipeline import submit
from lonnymq.pipeline.session import get_session


def package_location(_: Iterable[int]) -> Iterator[str]:
    import lonnymq

    yield lonnymq.__file__


def hang_first_attempt(batches: Iterator[Any]) -> Iterator[Any]:
    """Pass all rows on; the first attempt of one task then hangs until its copy has won."""
    yield from batches
    context = TaskContext.get()
    if context is not None and (context.partitionId(), context.attemptNumber()) == (3, 0):
        time.sleep(600)


def stream_through_queue(spark: SparkSession, dsn: str) -> int:
    """Stream rows into the queue and consume them again; return how many were consumed."""
    home = Path(tempfile.mkdtemp())
    numbers = spark.range(20).selectExpr("'b' as channel", "cast(id as string) as content")
    numbers.coalesce(1).write.parquet(str(home / "in"))
    stream = spark.readStream.schema("channel string, content string").parquet(str(home / "in"))
    writing = stream.writeStream.format("lonnymq").options(dsn=dsn, checkpointLocation=str(home / "written"))
    writing.trigger(availableNow=True).start().awaitTermination()
    consumed: list[int] = []

    def take(batch: DataFrame, _: int) -> None:
        consumed.extend(row["message_id"] for row in batch.collect())

    queue = spark.readStream.format("lonnymq").options(dsn=dsn, mode="consume").load()
    taking = queue.writeStream.foreachBatch(take).option("checkpointLocation", str(home / "taken"))
    taking.trigger(availableNow=True).start().awaitTermination()
    return len(set(consumed))


def main(dsn: str, lake: str) -> None:
    spark = get_session()
    rows = spark.range(0, 1000, 1, 4)
    frame = rows.mapInArrow(hang_first_attempt, rows.schema).selectExpr(
        "'a' as channel", "cast(id as string) as content"
    )
    frame.write.format("lonnymq").option("dsn", dsn).mode("append").save()
    live = spark.read.format("lonnymq").option("dsn", dsn).option("table", "message").load()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(package_location).collect()
    print("counted", live.count(), "from", sorted(set(places)), flush=True)
    with Queue(dsn) as queue:
        while batch := queue.dequeue(500):
            queue.complete(list(batch))
    print("consumed", stream_through_queue(spark, dsn), flush=True)
    history = spark.read.format("lonnymq").option("dsn", dsn).option("rows_per_partition", 400).load()
    print("read", history.count(), "in", history.rdd.getNumPartitions(), flush=True)
    assert submit.main(["archive", "--lake", lake, "--dsn", dsn]) == 0
    assert submit.main(["analyse", "--lake", lake, "--window", "1h"]) == 0
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
