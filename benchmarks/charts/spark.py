"""What results/spark.json shows: one table of ratios."""

from typing import Any

from benchmarks.charts.core import HEADING, cells
from benchmarks.charts.pages import Output, table

FILE = "spark.json"
COMMAND = "make bench-spark"
PARTS = ("spark-table",)
# Of those that have a note, it says how the figure is to be read.
NOTED = [*HEADING, "note"]


def make(document: dict[str, Any]) -> Output:
    rows = [[*cells(row), row["note"]] for row in document["rows"]]
    return Output(parts={"spark-table": table(NOTED, rows, numbers_from=2)})
