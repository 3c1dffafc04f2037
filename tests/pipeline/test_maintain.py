"""Maintenance of a lake, which needs no Spark: fewer files, the same rows, and nothing to compute again."""

import os
from datetime import date
from pathlib import Path

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from lonnymq import cli
from lonnymq.pipeline.analyse import ATTEMPTS, FIGURES, FIGURES_VERSION, POLICIES, _stale_days
from lonnymq.pipeline.lake import Batch, Lake, files
from lonnymq.pipeline.lake.delta import DeltaLakeTable
from lonnymq.pipeline.maintain import NotAnalysed, maintain
from lonnymq.pipeline.schemas import ATTEMPTS as SCHEMA

DAYS = (date(2030, 1, 1), date(2030, 1, 2))


def append(lake: Lake, number: int) -> None:
    """Add an attempt of each day, in a file of its own."""
    types = files.arrow_schema(SCHEMA)
    rows = [{"id": number, "channel": "a", "day": day} for day in DAYS]
    write_deltalake(
        lake.attempts.path, pyarrow.Table.from_pylist(rows, types), mode="append", partition_by=["day"]
    )


def ids(lake: Lake) -> list[int]:
    return sorted(DeltaTable(lake.attempts.path).to_pyarrow_table()["id"].to_pylist())


def test_joined_files_have_the_same_rows_and_need_no_new_analysis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(str(tmp_path))
    for number in range(5):
        append(lake, number)
    seen = [Batch(ATTEMPTS, lake.attempts.version or 0), Batch(POLICIES, 0), Batch(FIGURES, FIGURES_VERSION)]
    for table in (lake.windows(60), lake.reasons):
        table.record(seen)
    before = ids(lake)
    assert cli.main(["pipeline", "maintain", "--lake", lake.path]) == 0
    assert "attempts: 10 files, now 2; 0 uncommitted files deleted\n" in capsys.readouterr().out
    assert ids(lake) == before
    for table in (lake.windows(60), lake.reasons):
        assert _stale_days(lambda paths: set(DAYS) if paths else set(), lake, table, is_full=False) == []
    # Attempts that arrive later do.
    append(lake, 5)
    assert _stale_days(lambda paths: set(DAYS), lake, lake.windows(60), is_full=False) == list(DAYS)
    with pytest.raises(NotAnalysed, match="reasons, windows_60s do not contain all attempts yet"):
        maintain(lake)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert maintain(Lake(str(empty))) == []


def analysed(lake: Lake) -> list[int]:
    """Return which version of the attempts each table of figures has seen."""
    return [table.last_batch(ATTEMPTS) or 0 for table in (lake.windows(60), lake.reasons)]


def test_attempts_that_arrive_while_files_are_joined_are_analysed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, join = Lake(str(tmp_path)), DeltaLakeTable.join_files
    for number in range(3):
        append(lake, number)
    seen = [Batch(ATTEMPTS, lake.attempts.version or 0), Batch(POLICIES, 0), Batch(FIGURES, FIGURES_VERSION)]
    for table in (lake.windows(60), lake.reasons):
        table.record(seen)

    def join_late(table: DeltaLakeTable) -> tuple[int, int] | None:
        if table.path == lake.attempts.path:
            append(lake, 3)
        return join(table)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLakeTable, "join_files", join_late)
        maintain(lake)
    assert (len(lake.attempts.paths() or ()), analysed(lake)) == (2, [2, 2])
    assert _stale_days(lambda paths: set(DAYS) if paths else set(), lake, lake.windows(60), False) == list(
        DAYS
    )


def test_deleting_uncommitted_files_needs_no_new_analysis(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    for number in range(3):
        append(lake, number)
    for table in (lake.windows(60), lake.reasons):
        table.record([Batch(ATTEMPTS, lake.attempts.version or 0), Batch(FIGURES, FIGURES_VERSION)])
    orphan = Path(lake.attempts.path) / "day=2030-01-01" / "part-lost.parquet"
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))
    assert [one.deleted for one in maintain(lake) if one.table == "attempts"] == [1]
    assert maintain(lake) != []
    append(lake, 3)
    with pytest.raises(NotAnalysed):
        maintain(lake)
