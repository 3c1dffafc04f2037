"""Attempts into the lake, against Spark writing the same rows as Parquet."""

import time
import uuid
from functools import partial

from pyspark.sql import DataFrame

from benchmarks.bench import Row
from benchmarks.spark.ground import Ground, Measured
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.synthetic import SyntheticHistory, generate

TITLE = "archive attempts to Delta, exactly once"


def run(ground: Ground) -> list[Row]:
    # One day, as an archive that runs every hour has it; cached, so that only writing is measured.
    frame = generate(ground.spark, SyntheticHistory(rows=ground.size.rows, days=1)).cache()
    frame.count()
    measured: Measured = {
        "delta": partial(_delta, ground, frame),
        "parquet": partial(_parquet, ground, frame),
    }
    rates = ground.interleaved("archive", measured)
    frame.unpersist()
    return [Row("archive", TITLE, "parquet", "rows/s", rates["delta"], rates["parquet"], at_least=0.7)]


def _delta(ground: Ground, frame: DataFrame) -> float:
    lake = Lake(str(ground.directory / uuid.uuid4().hex))
    began_at = time.monotonic()
    assert lake.attempts.append(frame, Batch("bench", 0)) == ground.size.rows
    return ground.size.rows / (time.monotonic() - began_at)


def _parquet(ground: Ground, frame: DataFrame) -> float:
    began_at = time.monotonic()
    path = str(ground.directory / uuid.uuid4().hex)
    frame.write.option("compression", "zstd").partitionBy("day").parquet(path)
    return ground.size.rows / (time.monotonic() - began_at)
