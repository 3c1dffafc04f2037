"""Every design can be measured in its worst case; the figures do not matter."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.charts import designs as charts
from benchmarks.contenders import ChannelRow
from benchmarks.designs import __main__ as runner
from benchmarks.designs import contention, report
from benchmarks.designs.design import FAMILIES, BadDesign, Design, catalogue, read, split
from benchmarks.designs.measure import EFFORTS, Effort, Measurement, measure
from benchmarks.designs.pick_plan import PickPlan
from benchmarks.designs.report import Series
from benchmarks.harness import Harness, RunConditions

DESIGNS = catalogue()
# Enough for a turn of each of 1,000 channels and for working half of the rest, with messages left to pick.
ROWS = 3_000
EFFORT = Effort("smoke", (ROWS,), 1, 0.01, max_picks=2, min_picks=1)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_design_can_be_loaded_worsened_and_picked_from(small_harness: Harness, design: Design) -> None:
    measurement = measure(small_harness.server, design, ROWS, EFFORT, small_harness.progress)

    assert measurement.rows == ROWS
    assert measurement.pick_ms
    assert all(rate > 0 for rate in measurement.load_rows_per_s)
    assert measurement.table_bytes > ROWS * 100
    assert measurement.index_bytes > 0
    assert measurement.plan.pages > 0
    assert measurement.plan.lines


def test_every_family_has_a_reference_design_and_lonnymq() -> None:
    for family in FAMILIES:
        members = [design for design in DESIGNS if family in design.families]
        assert {design.is_ours for design in members} == {True, False}, family


def test_designs_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {design.name for design in DESIGNS}


def test_the_results_of_a_run_can_be_shown_as_charts_and_tables(server: Any, tmp_path: Path) -> None:
    path = tmp_path / "designs.json"
    chosen = ["--design", "flag_partial", "--design", "lonnymq_priority"]

    assert runner.main(["--smoke", "--dsn", server.dsn, "--output", str(path), *chosen]) == 0

    written = json.loads(path.read_text())
    assert {
        "machine",
        "versions",
        "date",
        "settings",
        "note",
        "designs",
        "flat",
        "contention",
    } <= written.keys()
    assert [design["name"] for design in written["designs"]] == ["flag_partial", "lonnymq_priority"]
    for design in written["designs"]:
        assert [size["rows"] for size in design["sizes"]] == list(EFFORTS["smoke"].sizes)
    [flat] = written["flat"]
    assert flat["at_most"] == 1.5
    for kept in written["designs"]:
        kept["sizes"][0]["effort"] = "full"
    path.write_text(json.dumps(written))
    again = ["--smoke", "--merge", "--dsn", server.dsn, "--output", str(path), "--design", "flag_partial"]
    assert runner.main(again) == 0
    written = json.loads(path.read_text())
    efforts = {design["name"]: [size["effort"] for size in design["sizes"]] for design in written["designs"]}
    assert efforts == {"flag_partial": ["smoke", "smoke"], "lonnymq_priority": ["full", "smoke"]}
    made = charts.make(written)
    assert set(charts.PARTS) <= made.parts.keys()
    for chart in made.charts.values():
        assert ElementTree.fromstring(chart).tag.endswith("svg")


def test_contending_producers_and_consumers_are_counted(
    small_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contention, "PRODUCERS", 2)
    created, completed = contention.measure(small_harness, ChannelRow(), 1)
    assert created > 0
    assert completed > 0


def make_measurement(rows: int, pick_ms: float) -> Measurement:
    plan = PickPlan(4, ("Index Scan (1 row, 4 pages)",))
    return Measurement(
        rows, (pick_ms,), (1.0,), 1, 1, plan, RunConditions("2030-01-01T00:00:00", 0.1), {"load": 1.0}
    )


@pytest.mark.parametrize(("large_ms", "holds"), [(1.4, True), (1.6, False)])
def test_picks_from_the_largest_table_may_take_half_as_long_again(large_ms: float, holds: bool) -> None:
    [ours] = [design for design in DESIGNS if design.name == "lonnymq_priority"]
    sizes = {
        10_000: [make_measurement(10_000, 1.0)] * 3,
        10_000_000: [make_measurement(10_000_000, large_ms)],
    }

    [row] = report.flat_rows([report.series_json(Series(ours, sizes), {"effort": "full", "sql": "same"})])

    assert row.holds is holds
    assert row.is_certain


def test_statements_end_at_semicolons_outside_bodies_and_comments() -> None:
    script = "do $$ begin; end $$;\n-- not; here\nselect 1; select $x$;$x$;"
    assert list(split(script)) == ["do $$ begin; end $$", "-- not; here\nselect 1", "select $x$;$x$"]
    with pytest.raises(BadDesign, match="semicolon"):
        list(split("select 1"))


def test_variables_are_replaced_and_casts_are_kept() -> None:
    design = read(
        "x", "-- x: y\n-- families: flag\n-- case: z\n-- [load]\nselect :last::int;\n-- [pick]\nselect 1;"
    )
    assert design.statements("load", rows=10) == ["select 10::int"]
    assert design.statements("replenish", rows=10) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("-- y: z\n-- families: flag\n-- case: c\n-- [load]\n;\n-- [pick]\n;", "must begin"),
        ("-- x: z\n-- families: flags\n-- case: c\n-- [load]\n;\n-- [pick]\n;", "unknown families"),
        ("-- x: z\n-- families: flag\n-- case: c\n-- [load]\n;\n-- [take]\n;", "unknown sections"),
        ("-- x: z\n-- families: flag\n-- [load]\n;\n-- [pick]\n;", "case"),
    ],
)
def test_an_incomplete_design_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(BadDesign, match=wrong):
        read("x", text)
