"""Following a queue: each round archives what is new, and computes only days that have changed."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from lonnymq import NewMessage, Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.lake import Lake


@pytest.fixture
def queue(dsn: str) -> Any:
    with Queue(dsn) as queue:
        queue.set(history="metadata")
        yield queue


def work(queue: Queue, channel: str, messages: int) -> None:
    queue.enqueue_many(NewMessage(channel=channel, payload={"n": n}) for n in range(messages))
    leased = queue.dequeue(limit=messages)
    queue.complete(leased[:-1])
    queue.bury(leased[-1:], error="no")


def add_late_attempt(connection: psycopg.Connection[Any]) -> None:
    """Add an attempt that ended two days ago and becomes visible only now, as of a long transaction."""
    times = ("created_at", "dequeue_at", "leased_at", "ended_at")
    same, moved = "message_id, channel_id, outcome, attempt", ", ".join(f"{one} - 172800000" for one in times)
    connection.execute(
        f"insert into history_overflow (channel, {same}, {', '.join(times)})"
        f" select 'late', {same}, {moved} from history limit 1".encode()
    )
    connection.execute("select history_prepare()")


def test_each_round_adds_what_is_new_and_computes_the_days_it_belongs_to(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, connect: Callable[..., Any]
) -> None:
    from lonnymq.pipeline.steps import FollowSettings, Source, follow

    work(queue, "acme", 6)
    connection, stopping = connect(), threading.Event()
    progress: list[str] = []

    def act(line: str) -> None:
        progress.append(line)
        if line.startswith("round 1:"):
            add_late_attempt(connection)
        elif line.startswith("round 2:"):
            stopping.set()

    settings = FollowSettings(interval_s=0)
    done = follow(spark, Source(dsn=dsn), lake, settings, stopping=stopping, on_progress=act)
    assert (done.rounds, done.rows) == (2, 7)
    first, second = (line for line in progress if line.startswith("round"))
    assert first.startswith("round 1: attempts archived: 6, days computed: 2, in ")
    assert first.endswith("; the lake is up to date")
    # The day of the late attempt, and the day after; today's figures have not changed.
    assert second.startswith("round 2: attempts archived: 1, days computed: 2, in ")
    computed = [line for line in progress if line.startswith("windows of")]
    assert computed[0] != computed[1]
    archived = sorted(row.id for row in lake.attempts.read(spark).select("id").collect())
    assert archived == [id_ for (id_,) in connection.execute("select id from history order by id")]
    assert queue.history.lag() == {"archive": 0}
    assert {row.channel for row in lake.windows(60).read(spark).collect()} == {"acme", "late"}
