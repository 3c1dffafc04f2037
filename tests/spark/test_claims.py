"""The consumer, called as Spark calls it: what it has claimed it keeps, completes, or gives up."""

import time
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from lonnymq import LonnyError, NewMessage, Queue
from lonnymq.spark import consume, options
from lonnymq.spark.consume import ConsumeReader
from tests.conftest import Connect
from tests.spark.conftest import work

Offset = dict[str, Any]
FIRST: Offset = {"claim": None}


def reader(dsn: str, **more: str) -> ConsumeReader:
    return ConsumeReader(options.consume({"dsn": dsn, "mode": "consume", **more}))


def fill(queue: Queue, count: int, channel: str = "a") -> None:
    queue.enqueue_many([NewMessage(channel=channel, payload=number) for number in range(count)])


def read(consumer: ConsumeReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    return [
        row
        for partition in consumer.partitions(start, end)
        for batch in consumer.read(partition)
        for row in batch.to_pylist()
    ]


def contents(rows: list[dict[str, Any]]) -> list[int]:
    return [int(row["content"]) for row in rows]


def test_a_batch_is_completed_when_the_next_is_asked_for_also_if_there_is_none(
    dsn: str, keeping: Queue
) -> None:
    fill(keeping, 5)
    consumer = reader(dsn, rows_per_partition="2")
    one = consumer.latestOffset(FIRST, ReadMaxRows(3))
    rows = read(consumer, FIRST, one)
    assert contents(rows) == [0, 1, 2]
    assert rows[0]["attempt"] == 1
    assert contents(read(consumer, FIRST, one)) == [0, 1, 2], "a batch may be read twice"
    two = consumer.latestOffset(one, ReadAllAvailable())
    assert keeping.status().leased == 2
    consumer.commit(one)
    assert contents(read(consumer, one, two)) == [3, 4]
    # Spark never says commit() for the last batch, but asks on.
    assert consumer.latestOffset(two, ReadMaxRows(3)) == two
    status = keeping.status()
    assert (status.leased, status.waiting) == (0, 0)
    consumer.stop()


def test_a_channel_with_a_cap_of_one_moves_on(dsn: str, queue: Queue) -> None:
    queue.channel("a").set(max_concurrency=1)
    fill(queue, 4)
    consumer = reader(dsn)
    consumer.prepareForTriggerAvailableNow()
    offset, seen = FIRST, []
    while (end := consumer.latestOffset(offset, ReadMaxRows(100))) != offset:
        assert queue.status().leased == 1
        seen += contents(read(consumer, offset, end))
        offset = end
    assert seen == [0, 1, 2, 3]
    assert queue.status().leased == 0
    consumer.stop()


def test_available_now_ends_although_producers_go_on(dsn: str, queue: Queue) -> None:
    fill(queue, 5)
    consumer = reader(dsn)
    consumer.prepareForTriggerAvailableNow()
    fill(queue, 5)
    first = consumer.latestOffset(FIRST, ReadAllAvailable())
    assert consumer.latestOffset(first, ReadAllAvailable()) == first
    assert queue.status().waiting == 5
    consumer.stop()


def test_a_driver_that_dies_loses_nothing_and_burns_no_attempt(dsn: str, keeping: Queue) -> None:
    fill(keeping, 6)
    before = reader(dsn, consumer="mine")
    # It dies after it claimed, before Spark has logged that.
    unlogged = before.latestOffset(FIRST, ReadMaxRows(2))
    before.stop()
    second = reader(dsn, consumer="mine")
    one = second.latestOffset(FIRST, ReadMaxRows(2))
    assert one == unlogged
    read(second, FIRST, one)
    two = second.latestOffset(one, ReadMaxRows(2))
    # Spark has logged this one, and dies in the middle of it: the next driver begins with partitions().
    second.stop()
    third = reader(dsn, consumer="mine")
    rows = read(third, one, two)
    assert contents(rows) == [2, 3]
    three = third.latestOffset(two, ReadMaxRows(2))
    third.stop()
    fourth = reader(dsn, consumer="mine")
    assert fourth.latestOffset(two, ReadMaxRows(2)) == three
    rows += read(fourth, two, three)
    assert {row["attempt"] for row in rows} == {1}
    assert fourth.latestOffset(three, ReadMaxRows(2)) == three
    assert keeping.status().leased == keeping.status().waiting == 0
    fourth.stop()


def test_two_queries_that_begin_at_once_do_not_share_a_claim(dsn: str, queue: Queue) -> None:
    fill(queue, 6)
    first, second = reader(dsn), reader(dsn)
    one, two = first.latestOffset(FIRST, ReadMaxRows(3)), second.latestOffset(FIRST, ReadMaxRows(3))
    assert one != two
    assert first.latestOffset(FIRST, ReadMaxRows(3)) == one, "asked again, it is the same"
    seen = contents(read(first, FIRST, one)) + contents(read(second, FIRST, two))
    assert sorted(seen) == list(range(6))
    for consumer, end in ((first, one), (second, two)):
        consumer.commit(end)
        consumer.stop()
    assert queue.status().leased == 0


def test_a_long_batch_keeps_its_leases(dsn: str, queue: Queue, connect: Connect) -> None:
    fill(queue, 2)
    consumer = reader(dsn, lease_s="4")
    end = consumer.latestOffset(FIRST, ReadMaxRows(2))
    session = connect()
    first: Any = session.execute("select min(unlock_at) from lease").fetchone()
    deadline = time.monotonic() + 60
    while session.execute("select from lease where unlock_at > %s + 5000000", first).fetchone() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not queue.dequeue(2)
    consumer.commit(end)
    assert queue.status().leased == 0
    consumer.stop()


def test_a_claim_is_not_kept_for_ever(dsn: str, queue: Queue) -> None:
    fill(queue, 2)
    consumer = reader(dsn, lease_s="1", max_claim_s="1")
    end = consumer.latestOffset(FIRST, ReadMaxRows(2))
    with Queue(dsn) as worker:
        redelivered = list(worker.dequeue(2, wait=60))
        # The keeper's last call may have had one of them locked.
        redelivered += worker.dequeue(2, wait=60) if len(redelivered) == 1 else []
        assert len(redelivered) == 2
        consumer.commit(end)
        worker.complete(redelivered)
    consumer.stop()


def test_a_lease_that_was_lost_is_told_while_it_runs_and_left_out_after_a_restart(
    dsn: str, queue: Queue, connect: Connect
) -> None:
    fill(queue, 3)
    consumer = reader(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    planned = consumer.partitions(FIRST, end)
    connect().execute("update lease set unlock_at = 0 where message_id = (select min(message_id) from lease)")
    [redelivered] = queue.dequeue(3)
    with pytest.raises(LonnyError, match="the leases of 1 messages ended"):
        list(consumer.read(planned[0]))
    consumer.stop()
    again = reader(dsn)
    assert contents(read(again, FIRST, end)) == [1, 2]
    # A claim works its messages together: none of them is charged with the loss.
    assert (redelivered.attempt, redelivered.suspicion) == (1, 1)
    assert again.latestOffset(end, ReadMaxRows(3)) == end
    assert queue.status().leased == 1
    redelivered.complete()
    again.stop()


def test_a_message_that_is_cancelled_meanwhile_is_skipped(dsn: str, queue: Queue) -> None:
    fill(queue, 3)
    consumer = reader(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    planned = consumer.partitions(FIRST, end)
    ids: Any = planned[0]
    queue.cancel([ids.ids[1]])
    rows = [row for batch in consumer.read(planned[0]) for row in batch.to_pylist()]
    assert contents(rows) == [0, 2]
    assert consumer.latestOffset(end, ReadMaxRows(3)) == end
    assert queue.status().leased == 0
    consumer.stop()


def test_a_claim_that_nobody_knows_any_more_is_an_empty_batch(
    dsn: str, queue: Queue, connect: Connect
) -> None:
    """Its messages went back to their channels when their leases ended."""
    fill(queue, 3)
    consumer = reader(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    connect().execute("delete from claim")
    connect().execute("update lease set unlock_at = 0")
    again = reader(dsn)
    assert read(again, FIRST, end) == []
    next_end = again.latestOffset(end, ReadMaxRows(3))
    assert contents(read(again, end, next_end)) == [0, 1, 2]
    again.commit(next_end)
    assert work(queue) == 0
    for one in (consumer, again):
        one.stop()


def test_large_contents_are_read_one_at_a_time_and_small_ones_many(
    dsn: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "READ_BYTES", 5000)
    queue.enqueue_many([NewMessage(channel="a", payload=text) for text in ["s"] * 5 + ["x" * 5000] * 35])
    consumer = reader(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(40))
    batches = [batch for part in consumer.partitions(FIRST, end) for batch in consumer.read(part)]
    assert [batch.num_rows for batch in batches] == [1, 4, 16, 8, 4, 2, 1, 1, 1, 1, 1]
    consumer.commit(end)
    consumer.stop()
