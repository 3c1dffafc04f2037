"""Charts are valid SVG, and pages show the recorded results."""

import json
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from benchmarks.charts import __main__ as generate
from benchmarks.charts import bars, lines, pages, units
from benchmarks.charts.bars import Bar, BarChart
from benchmarks.charts.lines import Line, LineChart
from benchmarks.charts.pages import Output, UnknownPart

SVG = "{http://www.w3.org/2000/svg}"


def chart(*drawn: Line) -> ElementTree.Element:
    line_chart = LineChart("a < b", x_title="rows", y_title="ms", y_format=units.milliseconds, lines=drawn)
    return ElementTree.fromstring(lines.render(line_chart))


def texts(root: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in root.iter(f"{SVG}text")]


def test_pages_and_charts_are_up_to_date_with_the_results() -> None:
    assert generate.main(["--check"]) == 0, "run make bench-charts"


def test_a_line_chart_labels_its_lines_and_its_decades() -> None:
    root = chart(
        Line("theirs", ((1e4, 1.0), (1e7, 2000.0))), Line("ours", ((1e4, 0.4), (1e7, 0.5)), is_ours=True)
    )
    assert {"a < b", "theirs, 2 s", "ours, 0.5 ms", "10k", "10M", "0.1 ms", "10 s"} <= set(texts(root))
    assert root.findtext(f"{SVG}title") == "a < b"
    assert root.findtext(f"{SVG}desc") == (
        "theirs: 1 ms at 10k, 2 s at 10M; ours: 0.4 ms at 10k, 0.5 ms at 10M"
    )


def test_every_colour_of_a_chart_has_a_dark_variant() -> None:
    drawn = chart(*(Line(f"line {number}", ((1.0, 1.0), (10.0, 2.0)), number == 0) for number in range(9)))
    style = drawn.findtext(f".//{SVG}style") or ""
    uses = {
        use for node in drawn.iter() for use in re.findall(r"(?:fill|stroke): #\w{6}", node.get("style", ""))
    }
    assert len(uses) > 9
    assert uses == set(re.findall(r'\[style\*="([^"]+)"\]', style.partition("prefers-color-scheme:dark")[2]))


def test_the_same_results_produce_the_same_file() -> None:
    line_chart = LineChart("t", "x", "y", units.count, (Line("ours", ((1, 1), (10, 2)), is_ours=True),))
    assert lines.render(line_chart) == lines.render(line_chart)


def test_the_line_of_lonnymq_is_drawn_last() -> None:
    root = chart(Line("ours", ((1, 1), (10, 2)), is_ours=True), Line("theirs", ((1, 3), (10, 4))))
    assert [node.get("id") for node in root.iter() if node.get("id") in ("ours", "other")] == [
        "other",
        "ours",
    ]


def test_a_single_point_can_be_drawn() -> None:
    root = chart(Line("flat", ((10_000.0, 1.0),)))
    assert {"flat, 1 ms", "10k", "1 ms", "10 ms"} <= set(texts(root))


def test_the_length_of_a_bar_is_proportional_to_its_figure() -> None:
    root = ElementTree.fromstring(
        bars.render(BarChart("t", "s", (Bar("a", 50.0, "50"), Bar("b", 100.0, "100", True, 80.0, 120.0))))
    )
    short, long = (bar_length(root, place) for place in (0, 1))
    assert long == pytest.approx(2 * short, rel=0.01)


def bar_length(root: ElementTree.Element, place: int) -> float:
    outline = root.find(f".//{SVG}g[@id='bar-{place}']/{SVG}path")
    assert outline is not None
    edges = [float(x) for x in re.findall(r"[ML] (\S+) \S+", outline.get("d", ""))]
    return max(edges) - min(edges)


@pytest.mark.parametrize(
    "wanted", [[10.0, 11.0, 12.0], [0.0, 100.0, 50.0], [100.0] * 5, [0.0, 0.0, 99.0, 100.0, 100.0]]
)
def test_labels_keep_their_order_and_do_not_overlap(wanted: list[float]) -> None:
    places = lines.spread_labels(wanted, 0.0, 100.0, gap=15.0)
    ordered = [places[number] for number in sorted(range(len(wanted)), key=lambda one: wanted[one])]
    assert all(later - earlier >= 15.0 - 1e-9 for earlier, later in pairwise(ordered))


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.2, "0.2 ms"), (35.4, "35 ms"), (4_500, "4.5 s"), (81_000, "81 s"), (600_000, "10 min")],
)
def test_durations_have_suitable_units(value: float, written: str) -> None:
    assert units.milliseconds(value) == written


@pytest.mark.parametrize(("value", "written"), [(10_000, "10k"), (1_000_000, "1M"), (20, "20"), (0, "0")])
def test_counts_are_abbreviated(value: float, written: str) -> None:
    assert units.count(value) == written


def test_only_the_text_between_marks_is_replaced(tmp_path: Path) -> None:
    page, results = tmp_path / "docs" / "page.md", tmp_path / "results"
    text = "before\n<!-- made by make bench-charts: a-part -->\nold\n<!-- end -->\nafter\n"
    output = Output(parts={"a-part": pages.image("t", "c.svg")})

    once = pages.fill_page(page, text, output, results)

    assert once == text.replace("old", "\n![t](../results/c.svg)\n")
    assert pages.fill_page(page, once, output, results) == once


def test_an_unknown_part_is_an_error(tmp_path: Path) -> None:
    text = "<!-- made by make bench-charts: unknown -->\n<!-- end -->"
    with pytest.raises(UnknownPart, match="unknown"):
        pages.fill_page(tmp_path / "page.md", text, Output(), tmp_path)


@pytest.mark.parametrize("module", generate.GENERATORS, ids=lambda module: module.FILE)
def test_a_page_without_results_names_the_command_that_measures(module: ModuleType, tmp_path: Path) -> None:
    output = generate.run_generator(module, tmp_path)
    assert set(module.PARTS) <= output.parts.keys()
    assert all(module.COMMAND in part for part in output.parts.values())
    assert not output.charts


def test_a_run_on_a_busy_machine_is_marked() -> None:
    document = {
        "date": "2030-01-01T00:00:00+00:00",
        "machine": {"cpu": "x", "cores": 2, "system": "y", "load": 9.0},
        "versions": {"postgresql": "15.1 (Debian)", "python": "3.11"},
        "settings": {"effort": "quick", "fsync": "on", "payload_bytes": 100},
        "note": "",
    }
    assert "load 9.0" in generate.measured_note(document, "make it")
    document = json.loads(json.dumps(document).replace("9.0", "0.5"))
    assert "load" not in generate.measured_note(document, "make it")
