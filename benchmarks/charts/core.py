"""Tables from results/core.json: the ratios, and the costs of operations."""

from typing import Any

from benchmarks.charts.pages import Output, table

FILE = "core.json"
COMMAND = "make bench-core"
PARTS = ("core-table", "core-costs")
Json = dict[str, Any]

COSTS = "costs"
COST_HEADING = ["operation", "per message", "LonnyMQ", "bare", "channel-row"]
HEADING = ["case", "compared with", "LonnyMQ", "reference", "ratio", "rounds", "bound"]


def make(document: Json) -> Output:
    ratios = [cells(row) for row in document["rows"] if row["case"] != COSTS]
    costs = cost_cells([row for row in document["rows"] if row["case"] == COSTS])
    parts = {
        "core-table": table(HEADING, ratios, numbers_from=2),
        "core-costs": table(COST_HEADING, costs, numbers_from=2),
    }
    return Output(parts=parts)


def cost_cells(rows: list[Json]) -> list[list[str]]:
    """Return a row for each unit and operation, with a column for each contender."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        values = found.setdefault((row["unit"], row["title"]), {"LonnyMQ": row["value"]})
        values[row["against"]] = row["reference"]
    return [
        [
            operation,
            unit,
            *(f"{values[name]:,.{0 if values[name] >= 100 else 1}f}" for name in COST_HEADING[2:]),
        ]
        for (unit, operation), values in found.items()
    ]


def cells(row: Json) -> list[str]:
    bounds = [f"{sign} {row[name]:g}" for name, sign in (("at_least", "≥"), ("at_most", "≤")) if name in row]
    unit = "" if row["unit"] == "messages/s" else f" {row['unit']}"
    rounds = row["rounds"]
    return [
        row["title"],
        row["against"] or "",
        f"{row['value']:,.0f}{unit}",
        "" if row["reference"] is None else f"{row['reference']:,.0f}{unit}",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        f"{min(rounds):.2f} to {max(rounds):.2f}" if len(rounds) > 1 else "",
        f"{bounds[0]}, {'met' if row['holds'] else '**missed**'}" if bounds else "",
    ]
