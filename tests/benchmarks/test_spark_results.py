"""The results of Spark's benchmark."""

from typing import Any

import pytest

from benchmarks.merge import NotComparable
from benchmarks.spark.__main__ import merge_results


def run(effort: str, sql: str, *cases: str) -> dict[str, Any]:
    return {
        "machine": {"cpu": "same", "cores": 2},
        "versions": {"postgresql": "15", "python": "3.11", "sql": sql},
        "settings": {"effort": effort},
        "rows": [{"case": case, "date": effort} for case in cases],
    }


def test_a_case_measured_at_another_size_replaces_only_that_case() -> None:
    standard = run("standard", "a", "spark-write", "analyse", "skew")
    merged = merge_results(standard, run("full", "a", "analyse"))
    assert [(row["case"], row["date"]) for row in merged["rows"]] == [
        ("spark-write", "standard"),
        ("analyse", "full"),
        ("skew", "standard"),
    ]
    assert merged["settings"] == {"effort": "standard"}
    with pytest.raises(NotComparable, match="sql"):
        merge_results(run("standard", "a", "write"), run("full", "b", "analyse"))
