"""What results/core.json shows: one table of ratios."""

from typing import Any

from benchmarks.charts.pages import Made, table

FILE = "core.json"
COMMAND = "make bench-core"
PARTS = ("core-table",)
Json = dict[str, Any]

HEADING = ["case", "against", "LonnyMQ", "the other", "ratio", "rounds", "aim"]


def make(document: Json) -> Made:
    rows = [cells(row) for row in document["rows"]]
    return Made(parts={"core-table": table(HEADING, rows, numbers_from=2)})


def cells(row: Json) -> list[str]:
    aim = f"≥ {row['at_least']:g}" if "at_least" in row else f"≤ {row['at_most']:g}"
    unit = "" if row["unit"] == "messages/s" else f" {row['unit']}"
    rounds = row["rounds"]
    return [
        row["title"],
        row["against"] or "",
        f"{row['value']:,.0f}{unit}",
        "" if row["reference"] is None else f"{row['reference']:,.0f}{unit}",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        f"{min(rounds):.2f} to {max(rounds):.2f}" if len(rounds) > 1 else "",
        f"{aim}, {'reached' if row['holds'] else '**missed**'}",
    ]
