"""The analysis on a standalone cluster of two workers, compared with local[2], and how its time splits."""

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyspark

from benchmarks.harness import Row
from benchmarks.spark.spark_harness import SESSION, SparkHarness
from benchmarks.spark.standalone import run_cluster
from benchmarks.spark.time_split import describe, split_of_stages
from lonnymq.pipeline import submit
from lonnymq.pipeline.analyse import analyse
from lonnymq.pipeline.lake import Lake
from lonnymq.pipeline.steps import generate
from lonnymq.pipeline.synthetic import SyntheticHistory

TITLE = "analyse, all figures, on a standalone cluster with two workers"
MEMORY = "2g"
EVENT_LOG = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def run(harness: SparkHarness) -> list[Row]:
    """Analyse the same history in this process and on a cluster, whose driver and executors start for it."""
    rows = harness.size.analysed_rows
    history = SyntheticHistory(rows=rows, days=7, tenants=100)
    home = harness.directory / uuid.uuid4().hex
    here, there = Lake(str(home / "here")), Lake(str(home / "there"))
    for lake in (here, there):
        generate(harness.spark, history, lake)
    began_at = time.monotonic()
    analyse(harness.spark, here)
    local_s = time.monotonic() - began_at
    harness.core.progress(f"  cluster local[2]: {local_s:,.1f} s")
    cluster_s, split = _analyse_on_cluster(home, there)
    harness.core.progress(f"  cluster two workers: {cluster_s:,.1f} s")
    note = f"{rows:,} attempts, with the start of Spark; time of tasks: {describe(split)}"
    return [Row("cluster", TITLE, "local[2]", "s", cluster_s, local_s, note=note)]


def _analyse_on_cluster(home: Path, lake: Lake) -> tuple[float, dict[str, float]]:
    spark_home = str(Path(pyspark.__file__).parent)
    environment = {
        **os.environ,
        "SPARK_HOME": spark_home,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    log = home / "events"
    log.mkdir()
    settings = {**SESSION, **EVENT_LOG, "spark.eventLog.dir": log.as_uri(), "spark.executor.memory": MEMORY}
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    with run_cluster(environment, home, memory=MEMORY) as url:
        began_at = time.monotonic()
        command = [f"{spark_home}/bin/spark-submit", "--master", url, *options]
        command += [str(Path(submit.__file__)), "analyse", "--lake", lake.path]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        took_s = time.monotonic() - began_at
    if done.returncode:
        raise SystemExit(f"the analysis on the cluster failed: {done.stderr[-3000:]}")
    [events] = log.iterdir()
    with events.open(encoding="utf-8") as lines:
        return took_s, split_of_stages(lines)
