"""A Spark driver that a test kills while it archives, consumes, writes a stream and writes a frame."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lonnymq.pipeline.steps import Lake, Source, archive
from lonnymq.spark.java import use_java
from tests.spark.conftest import SPARK_CONF, run_to_end


def stream_writer(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Stream files of numbers, one file per batch, into the channel `streamed`."""
    stream = spark.readStream.schema("channel string, content string").option("maxFilesPerTrigger", 1)
    writer = stream.parquet(str(home / "in")).writeStream.format("lonnymq").option("dsn", dsn)
    return writer.option("checkpointLocation", str(home / "writing"))


def consumer(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Consume all waiting messages, in small batches."""
    reader = spark.readStream.format("lonnymq").option("dsn", dsn).option("mode", "consume")
    stream = reader.option("max_messages", 40).option("lease_s", 600).load()
    return stream.writeStream.option("checkpointLocation", str(home / "consuming"))


def archive_arguments(home: Path, dsn: str) -> tuple[Source, Lake]:
    """Return what to archive, a few attempts per batch, and into which lake."""
    return Source(dsn=dsn, max_rows=6), Lake(str(home / "lake"))


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(50).selectExpr("'job' as channel", "cast(id as string) as content")


def run_in_thread(work: Callable[[], Any]) -> None:
    """Run `work` in a thread; if that ends or fails, print the error and end the driver."""

    def run() -> None:
        try:
            work()
        except Exception:  # noqa: BLE001
            traceback.print_exc()
        os._exit(1)

    threading.Thread(target=run).start()


def main(dsn: str, home: Path) -> None:
    use_java()
    builder = SparkSession.builder
    for name, value in SPARK_CONF.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def never_finish(frame: DataFrame, _: int) -> None:
        frame.collect()
        (home / "consuming").touch()
        time.sleep(3600)

    def block_after_batch(line: str) -> None:
        """Block once the lake has a batch, so that Spark never logs it as done."""
        if line.startswith("batch"):
            (home / "archived").touch()
            time.sleep(3600)

    run_in_thread(lambda: run_to_end(consumer(spark, dsn, home).foreachBatch(never_finish).start, 3600))
    run_in_thread(lambda: archive(spark, *archive_arguments(home, dsn), on_progress=block_after_batch))
    while not all((home / name).exists() for name in ("consuming", "archived")):
        time.sleep(0.05)
    stream_writer(spark, dsn, home).start()
    numbers(spark).write.format("lonnymq").options(dsn=dsn, job="nightly").mode("append").save()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
