"""The table from results/spark.json: one row per ratio."""

from typing import Any

from benchmarks.charts.core import HEADING, cells
from benchmarks.charts.pages import Output, table

FILE = "spark.json"
COMMAND = "make bench-spark"
PARTS = ("spark-table",)
# Some rows have a note that explains how to read the figure.
HEADING_WITH_NOTE = [*HEADING, "note"]


def make(document: dict[str, Any]) -> Output:
    rows = [[*cells(row), row["note"]] for row in document["rows"]]
    return Output(parts={"spark-table": table(HEADING_WITH_NOTE, rows, numbers_from=2)})
