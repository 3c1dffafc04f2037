"""Retention: old partitions are dropped without blocking anybody."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from lonnymq import Busy
from tests.conftest import Connect

DAY_MS = 86_400_000


def add_partition(connection: psycopg.Connection[Any], days_ago: int) -> str:
    """Make a partition for a day in the past, which history_prepare does not make."""
    day = (datetime.now(UTC) - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    name = f"history_{day:%Y%m%d}"
    begin = int(day.timestamp()) * 1000
    connection.execute(
        f"create table {name} partition of history for values from ({begin}) to ({begin + DAY_MS})".encode()
    )
    return name


def names(queue: Any) -> list[str]:
    return [partition.name for partition in queue.history.partitions()]


def test_partitions_are_created_in_advance(queue: Any) -> None:
    assert len(names(queue)) == 15
    assert queue.history.prepare(days=16) == 2
    assert len(names(queue)) == 17
    assert queue.history.prepare(days=16) == 0


def test_old_partitions_are_dropped_and_newer_ones_kept(queue: Any, connect: Connect) -> None:
    connection = connect()
    old = [add_partition(connection, days_ago) for days_ago in (40, 31)]
    young = add_partition(connection, 5)
    assert queue.history.prune(timedelta(days=30)) == old
    assert names(queue)[0] == young
    assert queue.history.prune(timedelta(days=30)) == []


def test_todays_partition_is_never_dropped(queue: Any) -> None:
    before = names(queue)
    assert queue.history.prune(timedelta(0)) == []
    assert queue.history.prune(datetime.now(UTC) + timedelta(days=10)) == []
    assert names(queue) == before


def test_a_blocked_prune_does_not_block_completions(queue: Any, connect: Connect) -> None:
    queue.set(history="metadata")
    old = add_partition(connect(), 40)
    queue.enqueue("a", 1)
    queue.enqueue("a", 2)
    message, other = queue.dequeue(2)
    completer = connect()
    completer.execute("begin")
    completer.execute("select message_complete(array[%s], array[%s])", (message.id, message.token))
    with pytest.raises(Busy, match=old):
        queue.history.prune(timedelta(days=30), retry_for_s=0.3)
    impatient = connect()
    impatient.execute("set lock_timeout = '50ms'")
    impatient.execute("select message_complete(array[%s], array[%s])", (other.id, other.token))
    completer.execute("commit")
    # The detach that had begun is finished now.
    assert queue.history.prune(timedelta(days=30)) == [old]
    assert old not in names(queue)


def test_a_prune_interrupted_after_detaching_can_be_finished(queue: Any, connect: Connect) -> None:
    connection = connect()
    old = add_partition(connection, 40)
    connection.execute(f"alter table history detach partition {old} concurrently".encode())
    assert queue.history.prune(timedelta(days=30)) == [old]
    assert connection.execute("select to_regclass(%s)", (f"lonnymq.{old}",)).fetchone() == (None,)


def test_history_records_finished_attempts(queue: Any, connect: Connect) -> None:
    queue.set(history="metadata")
    queue.enqueue("a", 1)
    queue.dequeue(worker="w")[0].defer(error="oh")
    queue.dequeue(worker="w")[0].complete()
    rows = connect().execute("select outcome, attempt, worker, error from history order by id").fetchall()
    assert rows == [("deferred", 1, "w", "oh"), ("completed", 2, "w", None)]
