"""Archiving a real queue: each attempt once, whatever fails, and nothing dropped before it is archived."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from lonnymq import NewMessage, Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.lake import Lake

OLD = timedelta(days=10)


@pytest.fixture
def queue(dsn: str) -> Any:
    with Queue(dsn) as queue:
        queue.set(history="full")
        yield queue


def run_messages(queue: Queue, channel: str, messages: int) -> None:
    """Create messages, complete all but the last one, and defer that."""
    queue.enqueue_many(
        NewMessage(channel=channel, payload={"n": n}, headers={"trace": str(n)}) for n in range(messages)
    )
    leased = queue.dequeue(limit=messages, worker="worker-1")
    queue.complete(leased[:-1])
    queue.defer(leased[-1:], delay=3600, error="not yet")


def make_old(connect: Callable[..., psycopg.Connection[Any]]) -> None:
    """Move all of history ten days back."""
    columns = "id, xid, message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, leased_at"
    ms = int(OLD.total_seconds() * 1000)
    with connect(autocommit=False) as connection:
        connection.execute(
            f"with moved as (delete from history returning *)"
            f" insert into history_overflow ({columns}, ended_at)"
            f" select {columns}, ended_at - {ms} from moved".encode()
        )
        connection.execute("select history_prepare()")


def archived_ids(spark: "SparkSession", lake: "Lake") -> list[int]:
    return sorted(row.id for row in lake.attempts.read(spark).select("id").collect())


def ids(connection: psycopg.Connection[Any]) -> list[int]:
    return [row[0] for row in connection.execute("select id from history order by id")]


def test_every_attempt_is_archived_once_and_unchanged(
    spark: "SparkSession",
    lake: "Lake",
    queue: Queue,
    dsn: str,
    connect: Callable[..., psycopg.Connection[Any]],
) -> None:
    from lonnymq.pipeline.steps import Source, archive

    source = Source(dsn=dsn, max_rows=7)
    assert dsn not in repr(source)
    queue.channel("acme").set(weight=3, max_concurrency=30)
    run_messages(queue, "acme", 10)
    progress: list[str] = []
    first = archive(spark, source, lake, on_progress=progress.append)
    assert (first.rows, first.batches) == (10, 2)
    assert progress[-1] == "batch 1: 3 attempts, 10 in total"
    assert archive(spark, source, lake).rows == 0
    run_messages(queue, "beta", 5)
    assert archive(spark, source, lake).rows == 5
    connection = connect()
    assert archived_ids(spark, lake) == ids(connection)
    names = "message_id, channel, outcome, attempt, worker, error, content_bytes, content, headers::text"
    expected = connection.execute(
        f"select {names}, ended_at, leased_at from history order by id".encode()
    ).fetchall()
    found = lake.attempts.read(spark).orderBy("id").collect()
    for row, (*values, ended_at, leased_at) in zip(found, expected, strict=True):
        assert [row[name.strip().removesuffix("::text")] for name in names.split(",")] == values
        assert round(row.ended_at.timestamp() * 1000) == ended_at
        assert round(row.leased_at.timestamp() * 1000) == leased_at
    [acme, beta] = lake.policies.read(spark).orderBy("channel").collect()
    assert (acme.weight, acme.max_concurrency, beta.weight) == (3, 30, 1)
    # A message that was deferred for an hour is not due, so it does not wait yet.
    assert lake.waiting.read(spark).count() == 0
    queue.enqueue_many(NewMessage(channel="beta", payload=n) for n in range(4))
    archive(spark, source, lake)
    assert [(row.channel, row.messages, row.leased) for row in lake.waiting.read(spark).collect()] == [
        ("beta", 4, 0)
    ]


def test_a_crash_between_both_commits_archives_no_row_twice(
    spark: "SparkSession",
    lake: "Lake",
    queue: Queue,
    dsn: str,
    connect: Callable[..., psycopg.Connection[Any]],
) -> None:
    from lonnymq.pipeline.archive import ArchiveFailed
    from lonnymq.pipeline.steps import Source, archive

    source = Source(dsn=dsn, max_rows=6)
    run_messages(queue, "acme", 10)
    make_old(connect)

    def die(line: str) -> None:
        raise RuntimeError("the driver dies after the lake's commit and before Spark's")

    with pytest.raises(ArchiveFailed):
        archive(spark, source, lake, on_progress=die)
    assert len(archived_ids(spark, lake)) == 6
    # Four attempts are not archived, and Spark has not committed the other six: none may be dropped.
    assert queue.history.prune(timedelta(days=1)) == []
    progress: list[str] = []
    again = archive(spark, source, lake, on_progress=progress.append)
    assert (again.rows, progress[0]) == (4, "batch 0 was archived before")
    connection = connect()
    assert archived_ids(spark, lake) == ids(connection)
    # The run has reported its last batch as done, so its days may be dropped.
    [reader] = queue.history.readers()
    assert (reader.behind, queue.history.lag()) == (0, {"archive": 0})
    run_messages(queue, "acme", 3)
    assert archive(spark, source, lake, keep=timedelta(days=1)).pruned != ()
    assert len(archived_ids(spark, lake)) == 13
    assert len(ids(connection)) == 3


def lose_last_batch(checkpoint: Path) -> None:
    for directory in ("offsets", "commits"):
        for name in ("2", ".2.crc"):
            (checkpoint / directory / name).unlink()


# What a power failure may leave of the files of batches 0 to 2, which Spark does not flush.
UNNOTICED: tuple[Callable[[Path], object], ...] = (lose_last_batch, shutil.rmtree)
DAMAGES: dict[str, Callable[[Path], object]] = {
    "offsets/2 is incomplete": lambda path: (path / "offsets" / "2").write_text(""),
    "commits/2 is incomplete": lambda path: (path / "commits" / "2").write_bytes(bytes(29)),
    "the checksum of offsets/2 is empty": lambda path: (path / "offsets" / ".2.crc").write_text(""),
    "metadata is incomplete": lambda path: (path / "metadata").write_text(""),
    "offsets/2 is missing": lambda path: (path / "offsets" / "2").unlink(),
    "commits/2 is missing": lambda path: (path / "commits" / "2").unlink(),
    "commits/1 is missing": lambda path: shutil.rmtree(path / "commits"),
    "a file of offsets is missing": lambda path: (path / "offsets" / "1").unlink(),
}


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_a_checkpoint_that_a_power_failure_damaged_loses_and_repeats_no_row(
    spark: "SparkSession",
    queue: Queue,
    dsn: str,
    tmp_path: Path,
    connect: Callable[..., psycopg.Connection[Any]],
    form: str,
) -> None:
    from lonnymq.pipeline.checkpoint import set_aside_if_damaged
    from lonnymq.pipeline.steps import Lake, LakeFormat, Source, archive

    lake = Lake(str(tmp_path / "lake"), LakeFormat(form))
    checkpoint, intact = tmp_path / "checkpoint", tmp_path / "intact"
    run_messages(queue, "acme", 5)
    assert archive(spark, Source(dsn=dsn, max_rows=2), lake, checkpoint=str(checkpoint)).batches == 3
    shutil.copytree(checkpoint, intact)
    assert set_aside_if_damaged(str(checkpoint)) is None
    for damage in (*UNNOTICED, DAMAGES["offsets/2 is incomplete"]):
        shutil.rmtree(checkpoint)
        shutil.copytree(intact, checkpoint)
        damage(checkpoint)
        run_messages(queue, "acme", 2)
        progress: list[str] = []
        done = archive(spark, Source(dsn=dsn), lake, checkpoint=str(checkpoint), on_progress=progress.append)
        assert done.rows == 2, progress
    assert "offsets/2 is incomplete" in progress[0]
    assert archived_ids(spark, lake) == ids(connect())
    for number, (expected, damage) in enumerate(DAMAGES.items()):
        damaged = tmp_path / f"a copy {number}"
        shutil.copytree(intact, damaged)
        damage(damaged)
        assert f"({expected})" in str(set_aside_if_damaged(damaged.as_uri()))
        assert not damaged.exists()
        assert damaged.with_name(f"{damaged.name}.damaged-1").exists()


def test_an_archive_continues_after_a_failover_only_if_told_to(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, connect: Callable[..., Any], tmp_path: Path
) -> None:
    from lonnymq.model import HistoryPosition
    from lonnymq.pipeline.archive import ArchiveFailed
    from lonnymq.pipeline.lake import Batch, LakeConflict
    from lonnymq.pipeline.lake.commit import HistorySpan, NumberedAddition
    from lonnymq.pipeline.steps import Source, archive

    checkpoint = tmp_path / "checkpoint"
    run_messages(queue, "acme", 4)
    archive(spark, Source(dsn=dsn), lake, checkpoint=str(checkpoint))
    # As a promoted standby sees it: the position is from another timeline.
    log = checkpoint / "offsets" / "0"
    log.write_text(re.sub(r'"origin": "[^"]+"', '"origin": "1/00000001/1"', log.read_text()))
    (checkpoint / "offsets" / ".0.crc").unlink()
    run_messages(queue, "acme", 3)
    with pytest.raises(ArchiveFailed, match="it is from history 1/00000001/1, but this is history"):
        archive(spark, Source(dsn=dsn), lake, checkpoint=str(checkpoint))
    assert archive(spark, Source(dsn=dsn, rebase=True), lake, checkpoint=str(checkpoint)).rows == 3
    run_messages(queue, "acme", 2)
    assert archive(spark, Source(dsn=dsn), lake, checkpoint=str(checkpoint)).rows == 2
    assert archived_ids(spark, lake) == ids(connect())

    def span(origin: str, start: int) -> HistorySpan:
        begin, end = HistoryPosition(start, 1), HistoryPosition(9, 1)
        return HistorySpan("archive", origin, begin, end, False, NumberedAddition(Batch("archive", 1)))

    recorded = {batch.writer: batch.number for batch in span("old", 1).batches}
    frame = spark.range(1)
    assert span("new", 9).new_rows(frame, recorded.get, "lake") is None
    later = replace(span("new", 9), end=HistoryPosition(10, 1))
    assert later.new_rows(frame, recorded.get, "lake") is not None
    with pytest.raises(LakeConflict, match="another database"):
        span("new", 8).new_rows(frame, recorded.get, "lake")


def test_a_lake_that_lost_its_last_commit_is_not_continued_with_a_hole(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, connect: Callable[..., Any], tmp_path: Path
) -> None:
    from lonnymq.pipeline.archive import ArchiveFailed
    from lonnymq.pipeline.steps import Lake, Source, archive

    checkpoint = str(tmp_path / "checkpoint")
    run_messages(queue, "acme", 4)
    archive(spark, Source(dsn=dsn), lake, checkpoint=checkpoint)
    run_messages(queue, "acme", 3)
    archive(spark, Source(dsn=dsn), lake, checkpoint=checkpoint)
    # As if the lake was restored from a backup.
    [*_, last] = sorted(Path(lake.attempts.path, "_delta_log").glob("*.json"))
    last.unlink()
    run_messages(queue, "acme", 2)
    with pytest.raises(ArchiveFailed, match=r"the checkpoint continues after .* Delete the checkpoint"):
        archive(spark, Source(dsn=dsn), lake, checkpoint=checkpoint)
    with pytest.raises(ArchiveFailed, match="is empty, but the checkpoint continues after"):
        archive(spark, Source(dsn=dsn), Lake(str(tmp_path / "new")), checkpoint=checkpoint)
    assert len(archived_ids(spark, lake)) == 4
    shutil.rmtree(checkpoint)
    assert archive(spark, Source(dsn=dsn), lake, checkpoint=checkpoint).rows == 5
    assert archived_ids(spark, lake) == ids(connect())
    with Queue(dsn, schema="other") as other:
        other.install()
        other.set(history="full")
        run_messages(other, "acme", 4)
    with pytest.raises(ArchiveFailed, match="has the history of another database"):
        archive(spark, Source(dsn=dsn, schema="other"), lake, checkpoint=str(tmp_path / "other"))
    # History that the restored lake lacks is gone.
    last = sorted(Path(lake.attempts.path, "_delta_log").glob("*.json"))[-1]
    last.unlink()
    shutil.rmtree(checkpoint)
    make_old(connect)
    run_messages(queue, "acme", 1)
    assert queue.history.forget("archive")
    assert queue.history.prune(timedelta(days=1)) != []
    with pytest.raises(ArchiveFailed, match=r"history up to \(.*\) has been dropped"):
        archive(spark, Source(dsn=dsn), lake, checkpoint=checkpoint)
