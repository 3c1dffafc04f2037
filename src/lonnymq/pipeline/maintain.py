"""Keeps a lake's tables fast to read: joins small files, and deletes uncommitted ones. Needs no Spark.

Joining files changes no rows, so figures that were up to date stay so: the tables that were computed from the
joined files record that they have seen the new ones.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from pyarrow import fs

from lonnymq.errors import LonnyError
from lonnymq.pipeline.analyse import ATTEMPTS, POLICIES
from lonnymq.pipeline.lake import Batch, Lake, Table
from lonnymq.pipeline.lake.storage import open_location
from lonnymq.pipeline.source import OnProgress, ignore_progress

# What figures are computed from.
SOURCES = (ATTEMPTS, POLICIES)
# A table with more files of a day than this takes noticeably longer to read.
MAX_FILES_OF_A_DAY = 200
FIGURES = re.compile(r"(windows|fairness)_([0-9]+)s")


class NotAnalysed(LonnyError):
    """There are attempts or policies that some figures do not contain yet: run the step `analyse` first."""


@dataclass(frozen=True)
class TableMaintenance:
    """How many files a table had and has, and how many uncommitted ones were deleted."""

    table: str
    files_before: int
    files_after: int
    deleted: int


def maintain(lake: Lake, *, on_progress: OnProgress = ignore_progress) -> list[TableMaintenance]:
    """Join small files of each day, and delete uncommitted files that are a week old."""
    lake.require()
    figures = {name: table for name, table in _tables(lake) if name not in SOURCES}
    done = []
    for name, table in _tables(lake):
        before = len(table.paths() or ())
        if name in SOURCES:
            _join_source_files(name, table, figures)
        else:
            table.join_files()
        deleted = table.vacuum()
        done.append(TableMaintenance(name, before, len(table.paths() or ()), deleted))
        on_progress(f"{name}: {before} files, now {done[-1].files_after}; {deleted} uncommitted ones deleted")
    return done


def delete_replaced(lake: Lake, older_than: timedelta) -> None:
    """Delete files of figures that were replaced so long ago; a reader that opened them before fails."""
    for name, table in _tables(lake):
        if name not in SOURCES:
            table.delete_replaced(older_than)


def has_many_files(table: Table) -> bool:
    """Whether joining the files of some day would make the table much faster to read."""
    by_day = Counter(path.rpartition("/")[0] for path in table.paths() or ())
    return any(count > MAX_FILES_OF_A_DAY for count in by_day.values())


def _join_source_files(name: str, source: Table, figures: dict[str, Table]) -> None:
    """Join the files of a table that others are computed from, unless one of them has not seen all of it."""
    version = source.version
    seen = {figure: table.last_batch(name) for figure, table in figures.items()}
    now = source.paths()
    # Some commits change no rows, such as those that deleted uncommitted files.
    behind = [
        figure
        for figure, last in seen.items()
        if last is not None and last != version and source.paths(last) != now
    ]
    if behind:
        raise NotAnalysed(
            f"{', '.join(sorted(behind))} do not contain all {name} yet: run the step analyse first, with the"
            " same --window"
        )
    # What another process has added meanwhile is not in the figures: then they are computed again.
    if version is not None and source.join_files() == (version, version + 1):
        for figure, last in seen.items():
            if last is not None:
                figures[figure].record([Batch(name, version + 1)])


def _tables(lake: Lake) -> Iterator[tuple[str, Table]]:
    """Yield the tables that exist, with their names."""
    files, root = open_location(lake.path)
    found = {one.base_name for one in files.get_file_info(fs.FileSelector(root, allow_not_found=True))}
    for name in (*SOURCES, "waiting", "rejected", "forecast", "reasons"):
        if name in found:
            yield name, getattr(lake, name)
    for name in sorted(found):
        if match := FIGURES.fullmatch(name):
            kind, seconds = match[1], int(match[2])
            yield name, lake.windows(seconds) if kind == "windows" else lake.fairness(seconds)
