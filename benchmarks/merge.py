"""Merges the results of a run into those of an earlier run, if the two are comparable."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results

Json = dict[str, Any]
# What must be the same in both runs, by section and key; each row keeps its own date and load.
SQL = ("versions", "sql")
EFFORT = ("settings", "effort")
MACHINE = (
    ("machine", "cpu"),
    ("machine", "cores"),
    ("versions", "postgresql"),
    ("versions", "python"),
)


class NotComparable(ValueError):
    """The two runs cannot be compared; the message says how they differ."""


def check_comparable(former: Json, later: Json, keys: Iterable[tuple[str, str]]) -> None:
    """Raise NotComparable if one of the keys differs."""
    for part, name in keys:
        before, now = former[part].get(name), later[part].get(name)
        if before != now:
            raise NotComparable(f"{part}, {name}: {before} in the file, {now} in this run")


def replace_rows(
    former: Sequence[Json], later: Sequence[Json], key: str, order: Sequence[object]
) -> list[Json]:
    """Return the rows of both runs in this order; a later row replaces the former one with its key."""
    measured_again = {row[key] for row in later}
    rows = [row for row in former if row[key] not in measured_again and row[key] in order]
    return sorted([*rows, *later], key=lambda row: order.index(row[key]))


def write_results(path: Path, later: Json, merge: Callable[[Json, Json], Json] | None) -> Path:
    """Write a run's results, merged with the file if requested; to a separate file if not comparable."""
    if merge is not None and path.exists():
        try:
            later = merge(json.loads(path.read_text(encoding="utf-8")), later)
        except NotComparable as error:
            path = path.with_suffix(".separate.json")
            print(f"not merged, because the two runs differ: {error}")
    return results.save(path, later)
