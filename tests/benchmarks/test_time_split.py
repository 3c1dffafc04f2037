"""How the time of a job splits, from Spark's event log."""

import json
from typing import Any

import pytest

from benchmarks.spark.time_split import describe, split_of_stages


def stage(accumulated: dict[str, Any]) -> str:
    listed = [{"Name": name, "Value": value} for name, value in accumulated.items()]
    return json.dumps({"Event": "SparkListenerStageCompleted", "Stage Info": {"Accumulables": listed}})


def test_the_time_of_tasks_is_divided_by_kind_of_work_and_stage() -> None:
    run, wrote = "internal.metrics.executorRunTime", "internal.metrics.shuffle.write.writeTime"
    waited = "internal.metrics.shuffle.read.fetchWaitTime"
    python = "total time to run Python workers"
    lines = [
        json.dumps({"Event": "SparkListenerTaskEnd"}),
        stage({run: 10_000, "scan time": "2000", wrote: 1_000_000_000}),
        stage({run: 8_000, "sort time": "3000", waited: 500, python: 4_000, "peak memory": "1.0 MiB"}),
    ]
    split = split_of_stages(lines)
    assert split == pytest.approx({"scan": 2, "shuffle": 1.5, "sort": 3, "write": 4.5, "compute": 7})
    assert describe(split) == "compute 39 %, write 25 %, sort 17 %, scan 11 %, shuffle 8 %"
