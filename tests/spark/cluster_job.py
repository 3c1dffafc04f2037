"""What is submitted to a cluster: all doors, one task copied because it is slow; archive and analyse."""

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
from lonnymq.pipeline.session import session


def where(_: Iterable[int]) -> Iterator[str]:
    import lonnymq

    yield lonnymq.__file__


def slow_at_first(batches: Iterator[Any]) -> Iterator[Any]:
    """Send all rows; and then the first attempt of one task does not end, until its copy has won."""
    yield from batches
    context = TaskContext.get()
    if context is not None and (context.partitionId(), context.attemptNumber()) == (3, 0):
        time.sleep(600)


def consumed(spark: SparkSession, dsn: str) -> int:
    """Stream rows into the queue and take them out again; return how many came."""
    home = Path(tempfile.mkdtemp())
    numbers = spark.range(20).selectExpr("'b' as channel", "cast(id as string) as content")
    numbers.coalesce(1).write.parquet(str(home / "in"))
    stream = spark.readStream.schema("channel string, content string").parquet(str(home / "in"))
    writing = stream.writeStream.format("lonnymq").options(dsn=dsn, checkpointLocation=str(home / "written"))
    writing.trigger(availableNow=True).start().awaitTermination()
    came: list[int] = []

    def take(batch: DataFrame, _: int) -> None:
        came.extend(row["message_id"] for row in batch.collect())

    queue = spark.readStream.format("lonnymq").options(dsn=dsn, mode="consume").load()
    taking = queue.writeStream.foreachBatch(take).option("checkpointLocation", str(home / "taken"))
    taking.trigger(availableNow=True).start().awaitTermination()
    return len(set(came))


def main(dsn: str, lake: str) -> None:
    spark = session()
    rows = spark.range(0, 1000, 1, 4)
    frame = rows.mapInArrow(slow_at_first, rows.schema).selectExpr(
        "'a' as channel", "cast(id as string) as content"
    )
    frame.write.format("lonnymq").option("dsn", dsn).mode("append").save()
    live = spark.read.format("lonnymq").option("dsn", dsn).option("table", "message").load()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    print("counted", live.count(), "from", sorted(set(places)), flush=True)
    with Queue(dsn) as queue:
        while batch := queue.dequeue(500):
            queue.complete(list(batch))
    print("consumed", consumed(spark, dsn), flush=True)
    history = spark.read.format("lonnymq").option("dsn", dsn).option("rows_per_partition", 400).load()
    print("read", history.count(), "in", history.rdd.getNumPartitions(), flush=True)
    assert submit.main(["archive", "--lake", lake, "--dsn", dsn]) == 0
    assert submit.main(["analyse", "--lake", lake, "--window", "1h"]) == 0
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
