"""The names of metrics follow the conventions, and the reference has all of them."""

import re
from pathlib import Path

from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.prometheus_names import MetricName

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference" / "metrics.md"
METRICS = [one for one in vars(names).values() if isinstance(one, MetricName)]


def row(metric: MetricName) -> str:
    labels = f"{{{', '.join(metric.labels)}}}" if metric.labels else ""
    return f"| `{metric.name}{labels}` | {metric.kind} | {metric.help} |"


def test_the_reference_has_exactly_the_metrics_that_there_are() -> None:
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith("| `lonnymq_")]
    assert sorted(found) == sorted(map(row, METRICS))
    assert {*names.QUEUE_METRICS, *names.WORKER_METRICS} == set(METRICS)


def test_names_follow_the_conventions_of_prometheus() -> None:
    assert len({one.name for one in METRICS}) == len(METRICS)
    for one in METRICS:
        assert re.fullmatch(r"lonnymq_[a-z]+(_[a-z]+)*", one.name)
        assert one.name.endswith("_total") == (one.kind == names.COUNTER)
        assert one.help.endswith(".")
        assert not re.search(r"_(ms|milliseconds|s|kb|mb|minutes|hours)(_|$)", one.name)
