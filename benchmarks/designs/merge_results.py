"""Merges a run of the designs into an earlier one, by design and size."""

from typing import Any

from benchmarks import merge
from benchmarks.designs.design import catalogue
from benchmarks.designs.report import flat_rows
from benchmarks.merge import MACHINE, NotComparable
from benchmarks.results import row_json

Json = dict[str, Any]


def merge_results(former: Json, later: Json) -> Json:
    """Return the later run, plus the designs and sizes that only the former run has measured.

    The efforts of the two runs may differ, because each size records its own run.
    """
    merge.check_comparable(former, later, MACHINE)
    designs = merge.replace_rows(
        with_run(former), add_former_sizes(former, later), "name", [design.name for design in catalogue()]
    )
    check_sql(designs, later["versions"]["sql"])
    rows = sorted({size["rows"] for design in designs for size in design["sizes"]})
    return later | {
        "settings": later["settings"] | {"rows": rows},
        "designs": designs,
        "flat": [row_json(row) for row in flat_rows(designs)],
        "contention": later["contention"] if later["contention"]["rows"] else former["contention"],
    }


def add_former_sizes(former: Json, later: Json) -> list[Json]:
    """Return the later designs, each with the sizes that only the former run has."""
    before = {design["name"]: design["sizes"] for design in with_run(former)}
    designs = []
    for design in later["designs"]:
        sizes = before.get(design["name"], [])
        order = sorted(size["rows"] for size in [*sizes, *design["sizes"]])
        designs.append(design | {"sizes": merge.replace_rows(sizes, design["sizes"], "rows", order)})
    return designs


def with_run(document: Json) -> list[Json]:
    """Return the designs, with the run recorded in each size; older files record it only in the head."""
    head = {
        "date": document["date"],
        "load": document["machine"]["load"],
        "effort": document["settings"]["effort"],
        "sql": document["versions"]["sql"],
    }
    return [design | {"sizes": [head | size for size in design["sizes"]]} for design in document["designs"]]


def check_sql(designs: list[Json], sql: str) -> None:
    """Raise NotComparable if kept figures of LonnyMQ are for other SQL; the other designs have their own."""
    for design in designs:
        for size in design["sizes"]:
            if design["is_ours"] and size["sql"] != sql:
                raise NotComparable(f"{design['name']} at {size['rows']:,} rows was measured with other SQL")
