"""Appending attempts to the lake, compared with Spark writing the same rows as Parquet."""

import time
import uuid
from functools import partial

from pyspark.sql import DataFrame

from benchmarks.harness import Row
from benchmarks.spark.spark_harness import Measurements, SparkHarness
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.synthetic import SyntheticHistory, generate

TITLE = "archive attempts to Delta, exactly once"


def run(harness: SparkHarness) -> list[Row]:
    # Rows of one day, as in an hourly archive; cached, so that only writing is measured.
    frame = generate(harness.spark, SyntheticHistory(rows=harness.size.rows, days=1)).cache()
    frame.count()
    measurements: Measurements = {
        "delta": partial(_delta, harness, frame),
        "parquet": partial(_parquet, harness, frame),
    }
    rates = harness.measure_in_turns("archive", measurements)
    frame.unpersist()
    return [Row("archive", TITLE, "parquet", "rows/s", rates["delta"], rates["parquet"], at_least=0.7)]


def _delta(harness: SparkHarness, frame: DataFrame) -> float:
    lake = Lake(str(harness.directory / uuid.uuid4().hex))
    began_at = time.monotonic()
    assert lake.attempts.append(frame, Batch("bench", 0)) == harness.size.rows
    return harness.size.rows / (time.monotonic() - began_at)


def _parquet(harness: SparkHarness, frame: DataFrame) -> float:
    began_at = time.monotonic()
    path = str(harness.directory / uuid.uuid4().hex)
    frame.write.option("compression", "zstd").partitionBy("day").parquet(path)
    return harness.size.rows / (time.monotonic() - began_at)
