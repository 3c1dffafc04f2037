"""The analysis of ten times as many attempts should take at most eleven times as long."""

import time
import uuid

from benchmarks.harness import Row
from benchmarks.spark.spark_harness import SparkHarness
from lonnymq.pipeline.analyse import analyse
from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.steps import generate
from lonnymq.pipeline.synthetic import SyntheticHistory

TITLE = "analyse, all figures, ten times the attempts"


def run(harness: SparkHarness) -> list[Row]:
    _measure(harness, harness.size.warm_up_rows)
    once = _measure(harness, harness.size.rows)
    tenfold = _measure(harness, 10 * harness.size.rows)
    heap_bytes = _heap_bytes(harness)
    note = f"{10 * harness.size.rows / tenfold:,.0f} attempts/s; heap {heap_bytes / 2**20:,.0f} MB"
    return [Row("analyse", TITLE, "a tenth", "s", tenfold, once, at_most=11, note=note)]


def _measure(harness: SparkHarness, rows: int) -> float:
    """Return how many seconds the analysis of a week takes."""
    lake = Lake(str(harness.directory / uuid.uuid4().hex))
    generate(harness.spark, SyntheticHistory(rows=rows, days=7, tenants=100), lake)
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
