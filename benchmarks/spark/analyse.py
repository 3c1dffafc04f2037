"""All figures of ten times the attempts in at most eleven times the time, and in bounded memory."""

import time
import uuid

from benchmarks.bench import Row
from benchmarks.spark.ground import Ground
from lonnymq.pipeline.analyse import analyse
from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.steps import generate
from lonnymq.pipeline.synthetic import SyntheticHistory

TITLE = "analyse, all metrics, ten times the attempts"


def run(ground: Ground) -> list[Row]:
    _measure(ground, ground.size.warm)
    once = _measure(ground, ground.size.rows)
    tenfold = _measure(ground, 10 * ground.size.rows)
    most_bytes = _most_bytes(ground)
    note = f"{10 * ground.size.rows / tenfold:,.0f} attempts/s; heap {most_bytes / 2**20:,.0f} MB"
    return [Row("analyse", TITLE, "a tenth", "s", tenfold, once, at_most=11, note=note)]


def _measure(ground: Ground, rows: int) -> float:
    """The seconds of one analysis of a week."""
    lake = Lake(str(ground.directory / uuid.uuid4().hex))
    generate(ground.spark, SyntheticHistory(rows=rows, days=7, tenants=100), lake)
    began_at = time.monotonic()
    done = analyse(ground.spark, lake)
    took_s = time.monotonic() - began_at
    ground.bench.progress(f"  analyse {rows:,} attempts, {done.windows:,} windows: {took_s:,.1f} s")
    return took_s


def _most_bytes(ground: Ground) -> int:
    """The heap that driver and tasks share here; it cannot grow beyond what it was given."""
    gateway = ground.spark.sparkContext._jvm
    assert gateway is not None
    runtime = gateway.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory())
