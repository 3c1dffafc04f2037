"""Puts what a run has measured into the results of a former one, if the two can stand in one table."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results

Json = dict[str, Any]
# What must be the same in the heads of both; each row keeps its own date and load.
SQL = ("versions", "sql")
EFFORT = ("settings", "effort")
MACHINE = (
    ("machine", "cpu"),
    ("machine", "cores"),
    ("versions", "postgresql"),
    ("versions", "python"),
)


class NotAlike(ValueError):
    """The two runs cannot be compared; the message says in what they differ."""


def check(former: Json, later: Json, alike: Iterable[tuple[str, str]]) -> None:
    for part, name in alike:
        before, now = former[part].get(name), later[part].get(name)
        if before != now:
            raise NotAlike(f"{part}, {name}: {before} in the file, {now} in this run")


def replaced(former: Sequence[Json], later: Sequence[Json], key: str, order: Sequence[object]) -> list[Json]:
    """Return all rows in that order; of what was measured again, only the later ones."""
    again = {row[key] for row in later}
    rows = [row for row in former if row[key] not in again and row[key] in order]
    return sorted([*rows, *later], key=lambda row: order.index(row[key]))


def write(path: Path, later: Json, merge: Callable[[Json, Json], Json] | None) -> Path:
    """Write a run's results, merged with those of the file if asked; beside it, if they are not alike."""
    if merge is not None and path.exists():
        try:
            later = merge(json.loads(path.read_text(encoding="utf-8")), later)
        except NotAlike as error:
            path = path.with_suffix(".apart.json")
            print(f"not merged, because the two differ: {error}")
    return results.save(path, later)
