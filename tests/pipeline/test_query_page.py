"""The page about querying the lake: its queries in Spark SQL, DuckDB and Polars have the same answers."""

import re
from typing import TYPE_CHECKING, Any

from tests.examples.pages import ROOT
from tests.pipeline.conftest import HalfAnalysed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PAGE = ROOT / "docs" / "howto" / "query-the-lake.md"


def blocks(engine: str) -> list[tuple[str, str]]:
    """Return the language and text of the page's blocks for an engine."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```(python|sql) {engine}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def rounded(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(round(float(one), 6) if not isinstance(one, str) else one for one in row) for row in rows]


def test_all_three_engines_give_the_same_answers(spark: "SparkSession", half_analysed: HalfAnalysed) -> None:
    import duckdb
    import polars

    lake = half_analysed.lake
    answers: dict[str, list[Any]] = {"spark": [], "duckdb": [], "polars": []}
    for engine, found in answers.items():
        names: dict[str, Any] = {"spark": spark, "lake": lake if engine == "spark" else lake.path}
        for language, text in blocks(engine):
            if language == "python":
                exec(compile(text, str(PAGE), "exec"), names)
                continue
            rows = spark.sql(text).collect() if engine == "spark" else names["database"].sql(text).fetchall()
            found.append(rounded(rows))
        found += [rounded(one.rows()) for one in names.values() if isinstance(one, polars.DataFrame)]
    assert duckdb.__version__
    assert answers["spark"] == answers["duckdb"] == answers["polars"]
    waits, hours, caps = answers["spark"]
    assert len(waits) == len(hours) > 3
    assert waits[0][1] > waits[-1][1]
    assert caps[0][0] == "capped"
