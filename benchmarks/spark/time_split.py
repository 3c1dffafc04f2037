"""How the time of a job's tasks splits, from Spark's event log."""

import json
from collections.abc import Iterable
from typing import Any

RUN_MS, SHUFFLE_WRITE_NS = "internal.metrics.executorRunTime", "internal.metrics.shuffle.write.writeTime"
FETCH_MS = "internal.metrics.shuffle.read.fetchWaitTime"
SCAN_MS, SORT_MS = "scan time", "sort time"
# Only stages that write files, or read them with pyarrow, have this one.
PYTHON = "time to run Python workers"


def split_of_stages(lines: Iterable[str]) -> dict[str, float]:
    """Return the seconds that tasks spent on each kind of work, over all stages of an event log.

    A stage that runs Python writes files: what it does not spend on sorting or on reading a shuffle is
    writing. In the other stages, the rest is the computation.
    """
    split = dict.fromkeys(("scan", "shuffle", "sort", "write", "compute"), 0.0)
    for line in lines:
        event = json.loads(line)
        if event["Event"] != "SparkListenerStageCompleted":
            continue
        stage = _accumulated(event["Stage Info"]["Accumulables"])
        scan, sort = stage.get(SCAN_MS, 0.0) / 1e3, stage.get(SORT_MS, 0.0) / 1e3
        shuffle = stage.get(SHUFFLE_WRITE_NS, 0.0) / 1e9 + stage.get(FETCH_MS, 0.0) / 1e3
        rest = max(0.0, stage.get(RUN_MS, 0.0) / 1e3 - scan - sort - shuffle)
        writes = any(name.endswith(PYTHON) for name in stage)
        for kind, seconds in (("scan", scan), ("shuffle", shuffle), ("sort", sort)):
            split[kind] += seconds
        split["write" if writes else "compute"] += rest
    return split


def describe(split: dict[str, float]) -> str:
    """Return the shares of all kinds of work, the largest first."""
    total = sum(split.values()) or 1.0
    ordered = sorted(split.items(), key=lambda one: -one[1])
    return ", ".join(f"{kind} {100 * seconds / total:.0f} %" for kind, seconds in ordered)


def _accumulated(accumulables: list[dict[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in accumulables:
        name, value = one.get("Name"), one.get("Value")
        if isinstance(name, str) and isinstance(value, int | float | str) and _is_number(value):
            found[name] = found.get(name, 0.0) + float(value)
    return found


def _is_number(value: float | str) -> bool:
    return not isinstance(value, str) or value.lstrip("-").isdigit()
