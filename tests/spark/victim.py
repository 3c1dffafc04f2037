"""A Spark driver to be killed: it archives, consumes, writes a stream and a frame, and ends none of them."""

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
from tests.spark.conftest import SPARK_CONF, to_the_end


def writing(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Files of numbers, one a batch, into the channel `streamed`."""
    stream = spark.readStream.schema("channel string, content string").option("maxFilesPerTrigger", 1)
    writer = stream.parquet(str(home / "in")).writeStream.format("lonnymq").option("dsn", dsn)
    return writer.option("checkpointLocation", str(home / "writing"))


def consuming(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Whatever waits, some at a time."""
    reader = spark.readStream.format("lonnymq").option("dsn", dsn).option("mode", "consume")
    stream = reader.option("max_messages", 40).option("lease_s", 600).load()
    return stream.writeStream.option("checkpointLocation", str(home / "consuming"))


def archiving(home: Path, dsn: str) -> tuple[Source, Lake]:
    """Some attempts at a time, into a lake of its own."""
    return Source(dsn=dsn, max_rows=6), Lake(str(home / "lake"))


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(50).selectExpr("'job' as channel", "cast(id as string) as content")


def beside(work: Callable[[], Any]) -> None:
    """Do it in a thread; the driver ends if that fails, and leaves what went wrong in its output."""

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

    def never_ends(frame: DataFrame, _: int) -> None:
        frame.collect()
        (home / "in the middle").touch()
        time.sleep(3600)

    def never_told(words: str) -> None:
        """The lake has its batch, and Spark does not know."""
        if words.startswith("batch"):
            (home / "archived").touch()
            time.sleep(3600)

    beside(lambda: to_the_end(consuming(spark, dsn, home).foreachBatch(never_ends).start, 3600))
    beside(lambda: archive(spark, *archiving(home, dsn), say=never_told))
    while not all((home / name).exists() for name in ("in the middle", "archived")):
        time.sleep(0.05)
    writing(spark, dsn, home).start()
    numbers(spark).write.format("lonnymq").options(dsn=dsn, job="nightly").mode("append").save()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
