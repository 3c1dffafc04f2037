"""What of a former run of the designs can stay, when some designs or sizes were measured again."""

from typing import Any

from benchmarks import merging
from benchmarks.designs.design import catalogue
from benchmarks.designs.report import flat_rows
from benchmarks.merging import MACHINE, NotAlike
from benchmarks.results import as_json

Json = dict[str, Any]


def merged(former: Json, later: Json) -> Json:
    """Return the later run with those designs and sizes of the former that it has not measured again.

    How much was measured may differ, since each size says of what run it is.
    """
    merging.check(former, later, MACHINE)
    designs = merging.replaced(
        stamped(former), with_sizes(former, later), "name", [design.name for design in catalogue()]
    )
    check_sql(designs, later["versions"]["sql"])
    rows = sorted({size["rows"] for design in designs for size in design["sizes"]})
    return later | {
        "settings": later["settings"] | {"rows": rows},
        "designs": designs,
        "flat": [as_json(row) for row in flat_rows(designs)],
        "crowd": later["crowd"] if later["crowd"]["rows"] else former["crowd"],
    }


def with_sizes(former: Json, later: Json) -> list[Json]:
    """Return the later designs, each with the sizes that only the former has."""
    before = {design["name"]: design["sizes"] for design in stamped(former)}
    found = []
    for design in later["designs"]:
        sizes = before.get(design["name"], [])
        order = sorted(size["rows"] for size in [*sizes, *design["sizes"]])
        found.append(design | {"sizes": merging.replaced(sizes, design["sizes"], "rows", order)})
    return found


def stamped(document: Json) -> list[Json]:
    """Return the designs, whose sizes say of what run they are; in older files only the head did."""
    head = {
        "date": document["date"],
        "load": document["machine"]["load"],
        "effort": document["settings"]["effort"],
        "sql": document["versions"]["sql"],
    }
    return [design | {"sizes": [head | size for size in design["sizes"]]} for design in document["designs"]]


def check_sql(designs: list[Json], sql: str) -> None:
    """Raise NotAlike if figures of ours would stay that are of other SQL; the others have their own."""
    for design in designs:
        for size in design["sizes"]:
            if design["is_ours"] and size["sql"] != sql:
                raise NotAlike(f"{design['name']} at {size['rows']:,} rows was measured with other SQL")
