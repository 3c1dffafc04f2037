"""Tables of the lake: a batch counts once, or there is an error."""

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.frames import attempts_frame, policies_frame
from tests.pipeline.straightforward import DAY, Attempt, Policy

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
    """So many attempts on each of two days."""
    return attempts_frame(
        spark,
        [
            Attempt(channel, at, at, at + 1, at + 2, "completed")
            for n in range(rows)
            for at in (NEW_YEAR + n, NEW_YEAR + DAY + n)
        ],
    )


def counts(spark: "SparkSession", lake: "Lake") -> dict[tuple[str, date], int]:
    rows = lake.attempts.read(spark).groupBy("channel", "day").count().collect()
    return {(row.channel, row.day): row["count"] for row in rows}


def test_a_batch_counts_once_and_a_lower_one_is_an_error(spark: "SparkSession", lake: "Lake") -> None:
    from lonnymq.pipeline.lake import Batch, LakeConflict

    frame = two_days(spark, "a")
    assert lake.attempts.read(spark).count() == 0
    assert lake.attempts.append(frame, Batch("w", 3)) == 10
    before = lake.attempts.read(spark).collect()
    # As after a crash between this commit and the writer's own.
    assert lake.attempts.append(frame, Batch("w", 3)) is None
    with pytest.raises(LakeConflict, match="has batch 3 of 'w', and now comes batch 2"):
        lake.attempts.append(frame, Batch("w", 2))
    assert sorted(lake.attempts.read(spark).collect()) == sorted(before) == sorted(frame.collect())
    assert lake.attempts.append(frame, Batch("other", 0)) == 10
    assert lake.attempts.append(frame, Batch("w", 4), Batch("owner", 7)) == 10
    with pytest.raises(LakeConflict, match="was written by another stream"):
        lake.attempts.append(frame, Batch("w", 5), Batch("owner", 8))
    assert (lake.attempts.last_batch("w"), lake.attempts.last_batch("owner")) == (4, 7)
    assert counts(spark, lake) == {("a", FIRST): 15, ("a", SECOND): 15}
    assert lake.attempts.days() == [FIRST, SECOND]


class Overtaken:
    """A frame during whose computation something happens."""

    def __init__(self, frame: "DataFrame", happens: Callable[[], object]) -> None:
        self.schema = frame.schema
        self._frame, self._happens = frame, happens

    def mapInArrow(self, *arguments: Any) -> "DataFrame":  # noqa: N802
        self._happens()
        return self._frame.mapInArrow(*arguments)


def test_two_that_write_the_same_batch_at_once_write_it_once(spark: "SparkSession", lake: "Lake") -> None:
    """Two drivers were started on one checkpoint, which has a batch that is not finished."""
    from lonnymq.pipeline.lake import Batch, LakeConflict

    frame = two_days(spark, "a")
    slow: Any = Overtaken(frame, lambda: lake.attempts.append(frame, Batch("w", 0), Batch("owner", 1)))
    if lake.form == "delta":
        with pytest.raises(LakeConflict, match="somebody else has written"):
            lake.attempts.append(slow, Batch("w", 0), Batch("owner", 1))
    else:
        assert lake.attempts.append(slow, Batch("w", 0), Batch("owner", 1)) is None
    assert counts(spark, lake) == {("a", FIRST): 5, ("a", SECOND): 5}


def test_files_that_no_commit_speaks_of_do_not_count(spark: "SparkSession", lake: "Lake") -> None:
    from lonnymq.pipeline.lake import Batch, files

    lake.attempts.append(two_days(spark, "a"), Batch("w", 1))
    # A task that was killed after it had written, under the name that its try would have given.
    hidden = "." if lake.form == "parquet" else ""
    left = files.write(two_days(spark, "lost"), lake.attempts.path, f"{hidden}part-")
    assert sum(one.rows for one in left) == 10
    assert counts(spark, lake) == {("a", FIRST): 5, ("a", SECOND): 5}


def test_days_are_replaced_and_others_stay(spark: "SparkSession", lake: "Lake") -> None:
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


def test_a_table_takes_rows_that_have_a_new_field(spark: "SparkSession", lake: "Lake") -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    from lonnymq.pipeline import schemas
    from lonnymq.pipeline.lake import Batch

    # As a lake that was written before policies had a max_size.
    earlier = StructType([field for field in schemas.POLICIES if field.name != "max_size"])
    rows = policies_frame(spark, [Policy("a")], FIRST)
    lake.table("policies", earlier).append(rows.drop("max_size"), Batch("w", 1))
    lake.policies.append(
        policies_frame(spark, [Policy("b")], FIRST).withColumn("max_size", f.lit(5).cast("bigint")),
        Batch("w", 2),
    )
    sizes = {row.channel: row.max_size for row in lake.policies.read(spark).collect()}
    assert sizes == {"a": None, "b": 5}
    lake.policies.replace(rows.withColumn("max_size", f.lit(7).cast("bigint")), [FIRST], [Batch("w", 3)])
    assert [row.max_size for row in lake.policies.read(spark).collect()] == [7]


def test_a_plain_commit_that_was_cut_off_is_mended_by_its_repetition(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from lonnymq.pipeline.lake import Batch, Lake, LakeFormat
    from lonnymq.pipeline.lake.plain import LOG

    lake = Lake(str(tmp_path), LakeFormat.PARQUET)
    lake.attempts.append(two_days(spark, "a"), Batch("w", 1))
    log = Path(lake.attempts.path) / LOG
    shutil.copy(log, tmp_path / "before")
    lake.attempts.append(two_days(spark, "b"), Batch("w", 2))
    # As if power had failed after the files got their names, and before the log told of them.
    shutil.copy(tmp_path / "before", log)
    assert lake.attempts.append(two_days(spark, "b"), Batch("w", 2)) == 10
    assert counts(spark, lake) == {(name, day): 5 for name in "ab" for day in (FIRST, SECOND)}
