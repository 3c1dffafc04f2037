"""The core benchmark runs, with tiny versions of some cases; the figures do not matter."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import core, merge, pages_touched, parallel, results
from benchmarks.cases import CASES
from benchmarks.harness import EFFORTS, Harness, Median, Row, RunConditions
from benchmarks.server import Server

# Small enough for a few seconds each.
EFFORT = dataclasses.replace(
    EFFORTS["smoke"],
    window_s=0.1,
    backlog=12_000,
    messages_before=300,
    channels=1_000,
    wakeups=3,
    drained_for_memory=1_000,
)
# Cases with every kind of load: drain, cycle, create, COPY, waiting.
MEASURED_CASES = ["drain-one-channel", "single-message", "bulk-create", "wake-up", "worker-drain"]
MORE_CASES = [
    "create-one-by-one",
    "held-snapshot-capped",
    "open-transaction",
    "idle-tenant",
    "new-name-flood",
    "worker-memory",
]


@pytest.fixture
def harness(server: Any) -> Harness:
    return Harness(Server(server.dsn), EFFORT, progress=lambda line: None)


@pytest.mark.parametrize(
    "name", [*MEASURED_CASES, *(pytest.param(name, marks=pytest.mark.heavy) for name in MORE_CASES)]
)
def test_a_case_measures_something(harness: Harness, name: str) -> None:
    [case] = [case for case in CASES if case.name == name]

    rows = case.run(harness)

    assert rows
    for row in rows:
        assert row.case == name
        assert row.unit == pages_touched.UNIT or (row.at_least is None) != (row.at_most is None)
        if row.reference is not None:
            assert row.value > 0
            assert row.reference > 0
        assert results.format_row(row)


def test_results_contain_machine_versions_and_settings(harness: Harness, tmp_path: Path) -> None:
    row = Row("a-case", "what it is", "bare", "messages/s", 90.0, 100.0, at_least=0.8)

    path = results.save(tmp_path / "core.json", results.document([row], harness, results.sql_digest()))

    written = json.loads(path.read_text())
    assert {"machine", "versions", "date", "settings", "rows"} <= written.keys()
    assert written["versions"]["is_sql_unchanged"]
    [answer] = written["rows"]
    assert answer | {"title": ""} == {
        "case": "a-case",
        "title": "",
        "against": "bare",
        "value": 90.0,
        "reference": 100,
        "ratio": 0.9,
        "at_least": 0.8,
        "holds": True,
        "is_certain": False,
        "rounds": [],
        "unit": "messages/s",
        "note": "",
    }


def test_merging_replaces_only_cases_that_were_measured_again(harness: Harness, tmp_path: Path) -> None:
    def run(date: str, *cases: str) -> dict[str, Any]:
        rows = [
            Row(case, "", None, "ms", 1.0, at_most=2.0, measured=RunConditions(date, 0.5)) for case in cases
        ]
        return results.document(rows, harness, "same")

    path = merge.write_results(
        tmp_path / "core.json", run("monday", "single-message", "wake-up"), core.merge_results
    )
    merge.write_results(path, run("tuesday", "wake-up", "bulk-create"), core.merge_results)
    separate = merge.write_results(
        path, run("friday", "wake-up") | {"machine": {"cpu": "another"}}, core.merge_results
    )

    rows = json.loads(path.read_text())["rows"]
    found = {"single-message": "monday", "bulk-create": "tuesday", "wake-up": "tuesday"}
    assert {row["case"]: row["date"] for row in rows} == found
    assert list(found) == [row["case"] for row in rows]
    assert separate.name == "core.separate.json"


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        ({"at_least": 0.9}, True),
        ({"at_least": 0.91}, False),
        ({"at_most": 0.9}, True),
        ({"at_most": 0.89}, False),
    ],
)
def test_a_bound_applies_to_the_ratio(bounds: dict[str, Any], holds: bool) -> None:
    assert Row("a-case", "", "bare", "messages/s", 90.0, 100.0, **bounds).holds is holds


def test_without_a_reference_a_bound_applies_to_the_value() -> None:
    assert Row("a-case", "", None, "messages", 115, at_most=115).holds
    assert not Row("a-case", "", None, "messages", 116, at_most=115).holds


def test_a_reference_of_zero_never_meets_a_bound() -> None:
    assert not Row("a-case", "", "bare", "messages/s", 90.0, 0.0, at_least=0.5).holds


@pytest.mark.parametrize(
    ("rounds", "is_certain"),
    [([90.0, 85.0, 95.0], True), ([90.0, 85.0, 70.0], False), ([90.0], False)],
)
def test_a_result_is_certain_only_if_three_rounds_agree(rounds: list[float], is_certain: bool) -> None:
    reference = Median([100.0] * len(rounds))
    row = Row("a-case", "", "bare", "messages/s", Median(rounds), reference, at_least=0.8)
    assert row.holds
    assert row.is_certain is is_certain


def fail(start: parallel.StartBarrier) -> None:
    raise ValueError("on purpose")


def test_a_failing_process_fails_the_measurement() -> None:
    with pytest.raises(RuntimeError, match="on purpose"):
        parallel.run([fail, fail])


def test_cases_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert core.main(["--list"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {case.name for case in CASES}
