"""Analyses of larger and of skewed histories, and how many files they leave."""

import math
import shutil
import time
import uuid
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from benchmarks.harness import Row
from benchmarks.spark.spark_harness import SparkHarness
from lonnymq.pipeline import synthetic
from lonnymq.pipeline.analyse import analyse
from lonnymq.pipeline.lake import Batch, Lake, Table
from lonnymq.pipeline.lake.delta import TARGET_BYTES
from lonnymq.pipeline.lake.files import by_day
from lonnymq.pipeline.steps import generate
from lonnymq.pipeline.synthetic import SyntheticHistory

TITLE = "analyse, all figures, ten times the attempts"
SKEW_TITLE = "analyse, all figures, half of the attempts of one tenant"
FILES_TITLE = "files of a day beyond those that its size needs, at most, after an analysis of a month"
# Half an hour for each round is enough to measure a ratio.
MAX_SKEWED_ROWS = 10_000_000
# On two cores of 2026, with the figures and their histograms; disks and heaps differ less than processors.
ATTEMPTS_PER_S, GENERATED_PER_S, BYTES_PER_ATTEMPT = 90_000, 250_000, 60
# The tenants among whom the attempts of a history without skew are divided.
EVEN_TENANTS = 100


def run(harness: SparkHarness) -> list[Row]:
    rows = harness.size.analysed_rows
    harness.core.progress(estimate(rows, harness.directory))
    _measure(harness, harness.size.warm_up_rows)
    once = _measure(harness, rows // 10)
    tenfold = _measure(harness, rows)
    heap_bytes = _heap_bytes(harness)
    note = f"{rows:,} attempts, {rows / tenfold:,.0f}/s; heap {heap_bytes / 2**20:,.0f} MB"
    return [Row("analyse", TITLE, "a tenth", "s", tenfold, once, at_most=11, note=note)]


def estimate(rows: int, directory: Path) -> str:
    """Say roughly how long an analysis and a tenth of it take; refuse if there is not enough disk."""
    total = rows + rows // 10
    minutes = total * (1 / ATTEMPTS_PER_S + 1 / GENERATED_PER_S) / 60
    needed, free = total * BYTES_PER_ATTEMPT, shutil.disk_usage(directory).free
    if needed > free:
        raise SystemExit(
            f"{directory} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} are needed: set TMPDIR"
        )
    return (
        f"  analyse: {rows:,} attempts and a tenth of them, about {minutes:,.0f} min, {needed / 1e9:.1f} GB"
    )


def run_skewed(harness: SparkHarness) -> list[Row]:
    """One tenant with half of all attempts of a week, compared with tenants of the same size."""
    number = f.pmod(f.xxhash64("message_id"), f.lit(2 * EVEN_TENANTS))
    tenant = f.concat(f.lit("tenant-"), f.pmod(number, f.lit(EVEN_TENANTS)).cast("string"))
    is_hot = number < EVEN_TENANTS
    rates = harness.measure_in_turns(
        "skew",
        {
            "even": lambda: _measure_channels(harness, tenant),
            "skewed": lambda: _measure_channels(harness, f.when(is_hot, f.lit("hot")).otherwise(tenant)),
        },
    )
    return [Row("skew", SKEW_TITLE, "even", "s", rates["skewed"], rates["even"], at_most=1.5)]


def run_files(harness: SparkHarness) -> list[Row]:
    """How many files a day has, beyond those that its size needs: at most as many as tasks write at once."""
    lake = _new_lake(harness)
    generate(harness.spark, SyntheticHistory(rows=harness.size.rows, days=30, tenants=100), lake)
    analyse(harness.spark, lake)
    tables = (lake.attempts, lake.windows(60), lake.reasons, lake.fairness(60))
    most = max(excess for table in tables for excess in _files_beyond_size(table))
    writers = harness.spark.sparkContext.defaultParallelism
    total = sum(len(table.paths() or ()) for table in tables)
    return [
        Row("files", FILES_TITLE, None, "files more", most, at_most=writers, note=f"{total} in all tables")
    ]


def _files_beyond_size(table: Table) -> list[int]:
    """Return for each day how many files it has more than are needed for its bytes."""
    days: dict[str, list[int]] = {}
    for path in table.paths() or ():
        days.setdefault(Path(path).parent.name, []).append(Path(path).stat().st_size)
    return [len(sizes) - math.ceil(sum(sizes) / TARGET_BYTES) for sizes in days.values()]


def _measure(harness: SparkHarness, rows: int) -> float:
    """Return how many seconds the analysis of a week takes."""
    lake = _new_lake(harness)
    generate(harness.spark, SyntheticHistory(rows=rows, days=7, tenants=100), lake)
    return _time(harness, lake, rows)


def _measure_channels(harness: SparkHarness, channel: Column) -> float:
    """Return how many seconds the analysis of a week takes if attempts belong to these channels."""
    lake, rows = _new_lake(harness), min(MAX_SKEWED_ROWS, harness.size.analysed_rows)
    history: DataFrame = synthetic.generate(harness.spark, SyntheticHistory(rows=rows, days=7))
    lake.attempts.append(by_day(history.withColumn("channel", channel)), Batch("benchmark", 0))
    return _time(harness, lake, rows)


def _new_lake(harness: SparkHarness) -> Lake:
    return Lake(str(harness.directory / uuid.uuid4().hex))


def _time(harness: SparkHarness, lake: Lake, rows: int) -> float:
    began_at = time.monotonic()
    done = analyse(harness.spark, lake)
    took_s = time.monotonic() - began_at
    harness.core.progress(f"  analyse {rows:,} attempts, {done.windows:,} windows: {took_s:,.1f} s")
    return took_s


def _heap_bytes(harness: SparkHarness) -> int:
    """Return the size of the heap that driver and tasks share."""
    gateway = harness.spark.sparkContext._jvm
    assert gateway is not None
    runtime = gateway.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory())
