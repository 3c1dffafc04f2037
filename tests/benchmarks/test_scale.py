"""The scale benchmark runs, with tiny versions of each scenario."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import server_costs
from benchmarks.charts import scale as charts
from benchmarks.scale import __main__ as runner
from benchmarks.scale import effort, message

TINY = effort.Effort("smoke", 1, 0.1, 100, (1, 2), (20, 40))


@pytest.mark.heavy
def test_the_results_of_a_run_can_be_shown_as_charts_and_tables(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(effort.EFFORTS, "smoke", TINY)
    monkeypatch.setattr(message, "HISTORIES", ("off", "metadata"))
    monkeypatch.setattr(message, "BATCHES", (10,))
    path = tmp_path / "scale.json"

    assert runner.main(["--smoke", "--dsn", server.dsn, "--output", str(path)]) == 0

    written = json.loads(path.read_text())
    assert {"machine", "versions", "date", "settings", "note", *runner.SCENARIOS} <= written.keys()
    assert all(row["wal_bytes_per_message"] > 100 for row in written["message"])
    assert all(row["messages_per_s"] > 0 for row in (*written["connections"], *written["channels"]))
    assert all(row["pages_per_dequeue"] > 100 for row in written["channels"])
    assert all(0 < row["queue_pulse"] < 1_000 for row in written["inspection"])
    assert all(row["bytes_per_attempt"] > 0 for row in written["history"])
    assert set(charts.make(written).parts) == set(charts.PARTS)

    again = ["--smoke", "--dsn", server.dsn, "--output", str(path), "--scenario", "history", "--merge"]
    assert runner.main(again) == 0

    merged = json.loads(path.read_text())
    assert merged["history"]
    assert merged["date"] >= written["date"]
    assert {name: merged[name] for name in ("message", "connections", "channels")} == {
        name: written[name] for name in ("message", "connections", "channels")
    }


def test_figures_that_were_not_measured_are_marked_as_missing() -> None:
    assert all("Not part" in part for part in charts.make({}).parts.values())


@pytest.mark.skipif(not server_costs.PROC.is_dir(), reason="needs /proc")
def test_process_times_can_be_read() -> None:
    own = server_costs.stat(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert own.own_s > 0
    assert server_costs.stat(2**22 + 1) is None
