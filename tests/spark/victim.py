"""A Spark driver to be killed: it consumes in a batch without an end, writes a stream, writes a frame."""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lonnymq.spark.java import use_java
from tests.spark.conftest import SPARK_CONF


def writing(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Files of numbers, one a batch, into the channel `streamed`."""
    stream = spark.readStream.schema("channel string, content string").option("maxFilesPerTrigger", 1)
    writer = stream.parquet(str(home / "in")).writeStream.format("lonnymq").option("dsn", dsn)
    return writer.option("checkpointLocation", str(home / "writing"))


def consuming(spark: SparkSession, dsn: str, home: Path) -> Any:
    """Whatever waits, some at a time."""
    reader = spark.readStream.format("lonnymq").option("dsn", dsn).option("mode", "consume")
    stream = reader.option("max_messages", 40).option("lease_ms", 600_000).load()
    return stream.writeStream.option("checkpointLocation", str(home / "consuming"))


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(50).selectExpr("'job' as channel", "cast(id as string) as content")


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

    consuming(spark, dsn, home).foreachBatch(never_ends).start()
    while not (home / "in the middle").exists():
        time.sleep(0.05)
    writing(spark, dsn, home).start()
    numbers(spark).write.format("lonnymq").options(dsn=dsn, job="nightly").mode("append").save()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
