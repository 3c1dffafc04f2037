"""Tables of the lake: each batch is committed once, or raises an error."""

import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.pipeline.frames import attempts_frame, policies_frame
from tests.pipeline.reference_windows import DAY_MS, Attempt, ReferencePolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lonnymq.pipeline.lake import Lake

NEW_YEAR = 1_893_456_000_000
FIRST, SECOND = date(2030, 1, 1), date(2030, 1, 2)


@pytest.fixture(params=["delta", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> "Lake":
    from lonnymq.pipeline.lake import Lake, LakeFormat

    return Lake(str(tmp_path / "a lake"), LakeFormat(request.param))


def two_days(spark: "SparkSession", channel: str, rows: int = 5) -> "DataFrame":
    """Attempts of a channel, `rows` on each of two days."""
    return attempts_frame(
        spark,
        [
            Attempt(channel, at, at, at + 1, at + 2, "completed")
            for n in range(rows)
            for at in (NEW_YEAR + n, NEW_YEAR + DAY_MS + n)
        ],
    )


def counts(spark: "SparkSession", lake: "Lake") -> dict[tuple[str, date], int]:
    rows = lake.attempts.read(spark).groupBy("channel", "day").count().collect()
    return {(row.channel, row.day): row["count"] for row in rows}


def test_a_day_that_is_computed_has_one_file_however_many_tasks_have_rows_of_it(
    spark: "SparkSession", lake: "Lake"
) -> None:
    """There are more days than a task keeps files open."""
    days = 40
    history = [
        Attempt("a", at, at, at + 1, at + 2, "completed")
        for number in range(4)
        for at in range(NEW_YEAR + number, NEW_YEAR + days * DAY_MS, DAY_MS)
    ]
    mixed = attempts_frame(spark, history).repartition(4, "id")
    lake.attempts.replace(mixed, None, [])
    assert (len(lake.attempts.paths() or ()), len(lake.attempts.days())) == (days, days)
    assert lake.attempts.read(spark).count() == len(history)


def test_a_commit_is_on_disk_before_it_is_reported(
    spark: "SparkSession", lake: "Lake", monkeypatch: pytest.MonkeyPatch
) -> None:
    from lonnymq.pipeline.lake import Batch

    flushed: set[str] = set()
    flush = os.fsync

    def record(descriptor: int) -> None:
        flush(descriptor)
        flushed.add(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", record)
    for number in range(2):
        flushed.clear()
        lake.attempts.append(two_days(spark, "a"), Batch("w", number))
        # Tasks flush what they write.
        root = Path(lake.attempts.path)
        if lake.form == "delta":
            log = root / "_delta_log"
            assert {str(root), str(log), str(log / f"{number + 1:020}.json")} <= flushed
        else:
            assert {str(root), *(str(path) for path in root.glob("day=*"))} <= flushed
    flushed.clear()
    before = set(lake.attempts.paths() or ())
    lake.attempts.join_files()
    joined = set(lake.attempts.paths() or ()) - before
    assert len(joined) == (2 if lake.form == "delta" else 0)
    assert joined <= flushed


def test_a_batch_is_committed_once_and_a_lower_number_is_an_error(
    spark: "SparkSession", lake: "Lake"
) -> None:
    from lonnymq.pipeline.lake import Batch, LakeConflict

    frame = two_days(spark, "a")
    assert lake.attempts.read(spark).count() == 0
    assert lake.attempts.append(frame, Batch("w", 3)) == 10
    before = lake.attempts.read(spark).collect()
    # As after a crash between this commit and the writer's own.
    assert lake.attempts.append(frame, Batch("w", 3)) is None
    with pytest.raises(LakeConflict, match="has batch 3 of 'w', but batch 2 was sent"):
        lake.attempts.append(frame, Batch("w", 2))
    assert sorted(lake.attempts.read(spark).collect()) == sorted(before) == sorted(frame.collect())
    assert lake.attempts.append(frame, Batch("other", 0)) == 10
    assert lake.attempts.append(frame, Batch("w", 4), Batch("owner", 7)) == 10
    with pytest.raises(LakeConflict, match="was written by another stream"):
        lake.attempts.append(frame, Batch("w", 5), Batch("owner", 8))
    assert (lake.attempts.last_batch("w"), lake.attempts.last_batch("owner")) == (4, 7)
    assert counts(spark, lake) == {("a", FIRST): 15, ("a", SECOND): 15}
    assert lake.attempts.days() == [FIRST, SECOND]


class InterruptedFrame:
    """A frame that calls a function while it is computed."""

    def __init__(self, frame: "DataFrame", callback: Callable[[], object]) -> None:
        self.schema = frame.schema
        self._frame, self._callback = frame, callback

    def mapInArrow(self, *arguments: Any) -> "DataFrame":  # noqa: N802
        self._callback()
        return self._frame.mapInArrow(*arguments)


def test_two_writers_of_the_same_batch_commit_it_once(spark: "SparkSession", lake: "Lake") -> None:
    """Two drivers were started on one checkpoint with an unfinished batch."""
    from lonnymq.pipeline.lake import Batch, LakeConflict

    frame = two_days(spark, "a")
    slow: Any = InterruptedFrame(frame, lambda: lake.attempts.append(frame, Batch("w", 0), Batch("owner", 1)))
    if lake.form == "delta":
        with pytest.raises(LakeConflict, match="another process committed"):
            lake.attempts.append(slow, Batch("w", 0), Batch("owner", 1))
    else:
        assert lake.attempts.append(slow, Batch("w", 0), Batch("owner", 1)) is None
    assert counts(spark, lake) == {("a", FIRST): 5, ("a", SECOND): 5}


def test_uncommitted_files_are_not_read(spark: "SparkSession", lake: "Lake") -> None:
    from lonnymq.pipeline.lake import Batch, files

    lake.attempts.append(two_days(spark, "a"), Batch("w", 1))
    # Files of a task that was killed after writing them.
    hidden = "." if lake.form == "parquet" else ""
    leftover = files.write(two_days(spark, "lost"), lake.attempts.path, f"{hidden}part-")
    assert sum(one.rows for one in leftover) == 10
    assert counts(spark, lake) == {("a", FIRST): 5, ("a", SECOND): 5}
    # A week later.
    paths = [Path(lake.attempts.path) / one.path for one in leftover]
    for path in paths:
        os.utime(path, (0, 0))
    assert lake.attempts.vacuum() == len(paths)
    assert not any(path.exists() for path in paths)
    assert counts(spark, lake) == {("a", FIRST): 5, ("a", SECOND): 5}


def test_replacing_days_keeps_the_other_days(spark: "SparkSession", lake: "Lake") -> None:
    from lonnymq.pipeline.lake import Batch

    lake.attempts.append(two_days(spark, "a"), Batch("w", 1))
    other = two_days(spark, "b", 2)
    assert lake.attempts.replace(other.where(other.day == SECOND), [SECOND], [Batch("r", 1)]) == 2
    assert counts(spark, lake) == {("a", FIRST): 5, ("b", SECOND): 2}
    assert lake.attempts.replace(other.limit(0), [FIRST], [Batch("r", 2)]) == 0
    assert counts(spark, lake) == {("b", SECOND): 2}
    assert lake.attempts.replace(other, None, [Batch("r", 3)]) == 4
    assert counts(spark, lake) == {("b", FIRST): 2, ("b", SECOND): 2}
    assert lake.attempts.last_batch("r") == 3


def test_a_table_accepts_rows_with_a_new_field(spark: "SparkSession", lake: "Lake") -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    from lonnymq.pipeline import schemas
    from lonnymq.pipeline.lake import Batch

    # Like a lake that was written before policies had a max_size.
    earlier = StructType([field for field in schemas.POLICIES if field.name != "max_size"])
    rows = policies_frame(spark, [ReferencePolicy("a")], FIRST)
    lake.table("policies", earlier).append(rows.drop("max_size"), Batch("w", 1))
    lake.policies.append(
        policies_frame(spark, [ReferencePolicy("b")], FIRST).withColumn("max_size", f.lit(5).cast("bigint")),
        Batch("w", 2),
    )
    sizes = {row.channel: row.max_size for row in lake.policies.read(spark).collect()}
    assert sizes == {"a": None, "b": 5}
    if lake.form == "delta":
        # Other readers know only the columns in Delta's own schema.
        found = DeltaTable(lake.policies.path).to_pyarrow_table().to_pylist()
        assert {row["channel"]: row["max_size"] for row in found} == sizes
    # And before attempts had headers.
    earlier = StructType([field for field in schemas.ATTEMPTS if field.name != "headers"])
    lake.table("attempts", earlier).append(two_days(spark, "a", 1).drop("headers"), Batch("w", 1))
    lake.attempts.append(two_days(spark, "b", 1).withColumn("headers", f.lit('{"x": "y"}')), Batch("w", 2))
    headers = {row.channel: row.headers for row in lake.attempts.read(spark).collect()}
    assert headers == {"a": None, "b": '{"x": "y"}'}
    lake.policies.replace(rows.withColumn("max_size", f.lit(7).cast("bigint")), [FIRST], [Batch("w", 3)])
    assert [row.max_size for row in lake.policies.read(spark).collect()] == [7]


def test_repeating_an_interrupted_parquet_commit_completes_it(spark: "SparkSession", tmp_path: Path) -> None:
    from lonnymq.pipeline.lake import Batch, Lake, LakeFormat
    from lonnymq.pipeline.lake.parquet import LOG_NAME

    lake = Lake(str(tmp_path), LakeFormat.PARQUET)
    lake.attempts.append(two_days(spark, "a"), Batch("w", 1))
    log = Path(lake.attempts.path) / LOG_NAME
    shutil.copy(log, tmp_path / "before")
    lake.attempts.append(two_days(spark, "b"), Batch("w", 2))
    # As if power had failed after the files became visible and before the log was written.
    shutil.copy(tmp_path / "before", log)
    assert lake.attempts.append(two_days(spark, "b"), Batch("w", 2)) == 10
    assert counts(spark, lake) == {(name, day): 5 for name in "ab" for day in (FIRST, SECOND)}
