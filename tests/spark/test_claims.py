"""The consumer, called as Spark calls it: how it keeps, completes and loses what it has claimed."""

import json
import time
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from lonnymq import LonnyError, NewMessage, Queue
from lonnymq.spark import consume, options
from lonnymq.spark.consume import ConsumeReader
from tests.conftest import Connect
from tests.spark.conftest import complete_due

Offset = dict[str, Any]
FIRST: Offset = {"claim": None}


def make_consumer(dsn: str, **more: str) -> ConsumeReader:
    return ConsumeReader(options.parse_consume({"dsn": dsn, "mode": "consume", **more}))


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


def test_a_batch_is_completed_when_spark_asks_for_the_next_one(dsn: str, history_queue: Queue) -> None:
    fill(history_queue, 5)
    consumer = make_consumer(dsn, rows_per_partition="2")
    one = consumer.latestOffset(FIRST, ReadMaxRows(3))
    rows = read(consumer, FIRST, one)
    assert contents(rows) == [0, 1, 2]
    assert rows[0]["attempt"] == 1
    assert contents(read(consumer, FIRST, one)) == [0, 1, 2], "a batch may be read twice"
    two = consumer.latestOffset(one, ReadMaxRows(1000))
    assert history_queue.status().leased == 2
    consumer.commit(one)
    assert contents(read(consumer, one, two)) == [3, 4]
    # Spark never calls commit() for the last batch, but asks for the next one.
    assert consumer.latestOffset(two, ReadMaxRows(3)) == two
    status = history_queue.status()
    assert (status.leased, status.waiting) == (0, 0)
    consumer.stop()


def test_a_batch_has_the_headers_of_its_messages(dsn: str, queue: Queue) -> None:
    queue.enqueue("a", 1, headers={"region": "eu", "name": 'Zoë "\n'})
    queue.enqueue("a", 2)
    consumer = make_consumer(dsn)
    rows = read(consumer, FIRST, consumer.latestOffset(FIRST, ReadMaxRows(2)))
    assert json.loads(rows[0]["headers"]) == {"region": "eu", "name": 'Zoë "\n'}
    assert rows[1]["headers"] is None
    consumer.stop()


def test_a_channel_with_a_cap_of_one_advances_batch_by_batch(dsn: str, queue: Queue) -> None:
    queue.channel("a").set(max_concurrency=1)
    fill(queue, 4)
    consumer = make_consumer(dsn)
    consumer.prepareForTriggerAvailableNow()
    offset, seen = FIRST, []
    while (end := consumer.latestOffset(offset, ReadMaxRows(100))) != offset:
        assert queue.status().leased == 1
        seen += contents(read(consumer, offset, end))
        offset = end
    assert seen == [0, 1, 2, 3]
    assert queue.status().leased == 0
    consumer.stop()


def test_available_now_ends_while_producers_continue(dsn: str, queue: Queue) -> None:
    fill(queue, 5)
    consumer = make_consumer(dsn)
    consumer.prepareForTriggerAvailableNow()
    fill(queue, 5)
    first = consumer.latestOffset(FIRST, ReadMaxRows(1000))
    assert consumer.latestOffset(first, ReadMaxRows(1000)) == first
    assert queue.status().waiting == 5
    consumer.stop()


def test_a_driver_that_dies_loses_no_message_and_spends_no_attempt(dsn: str, history_queue: Queue) -> None:
    fill(history_queue, 6)
    before = make_consumer(dsn, consumer="mine")
    # The driver dies after claiming, before Spark has logged the claim.
    unlogged = before.latestOffset(FIRST, ReadMaxRows(2))
    before.stop()
    second = make_consumer(dsn, consumer="mine")
    one = second.latestOffset(FIRST, ReadMaxRows(2))
    assert one == unlogged
    read(second, FIRST, one)
    two = second.latestOffset(one, ReadMaxRows(2))
    # The driver dies in the middle of a logged batch: the next driver starts with partitions().
    second.stop()
    third = make_consumer(dsn, consumer="mine")
    rows = read(third, one, two)
    assert contents(rows) == [2, 3]
    three = third.latestOffset(two, ReadMaxRows(2))
    third.stop()
    fourth = make_consumer(dsn, consumer="mine")
    assert fourth.latestOffset(two, ReadMaxRows(2)) == three
    rows += read(fourth, two, three)
    assert {row["attempt"] for row in rows} == {1}
    assert fourth.latestOffset(three, ReadMaxRows(2)) == three
    assert history_queue.status().leased == history_queue.status().waiting == 0
    fourth.stop()


def test_two_queries_started_together_do_not_share_a_claim(dsn: str, queue: Queue) -> None:
    fill(queue, 6)
    first, second = make_consumer(dsn), make_consumer(dsn)
    one, two = first.latestOffset(FIRST, ReadMaxRows(3)), second.latestOffset(FIRST, ReadMaxRows(3))
    assert one != two
    assert first.latestOffset(FIRST, ReadMaxRows(3)) == one, "asking again returns the same claim"
    seen = contents(read(first, FIRST, one)) + contents(read(second, FIRST, two))
    assert sorted(seen) == list(range(6))
    for consumer, end in ((first, one), (second, two)):
        consumer.commit(end)
        consumer.stop()
    assert queue.status().leased == 0


def test_a_long_batch_keeps_its_leases(dsn: str, queue: Queue, connect: Connect) -> None:
    fill(queue, 2)
    consumer = make_consumer(dsn, lease_s="4")
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


def test_leases_of_a_claim_are_not_extended_beyond_max_claim_s(dsn: str, queue: Queue) -> None:
    fill(queue, 2)
    consumer = make_consumer(dsn, lease_s="1", max_claim_s="1")
    end = consumer.latestOffset(FIRST, ReadMaxRows(2))
    with Queue(dsn) as worker:
        redelivered = list(worker.dequeue(2, wait=60))
        # The last heartbeat may still have had one of them locked.
        redelivered += worker.dequeue(2, wait=60) if len(redelivered) == 1 else []
        assert len(redelivered) == 2
        consumer.commit(end)
        worker.complete(redelivered)
    consumer.stop()


def test_a_lost_lease_fails_the_batch_and_is_left_out_after_a_restart(
    dsn: str, queue: Queue, connect: Connect
) -> None:
    fill(queue, 3)
    consumer = make_consumer(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    planned = consumer.partitions(FIRST, end)
    connect().execute("update lease set unlock_at = 0 where message_id = (select min(message_id) from lease)")
    [redelivered] = queue.dequeue(3)
    with pytest.raises(LonnyError, match="1 messages lost their lease"):
        list(consumer.read(planned[0]))
    consumer.stop()
    again = make_consumer(dsn)
    assert contents(read(again, FIRST, end)) == [1, 2]
    # Messages of one claim share a worker, so no single one is blamed for the loss.
    assert (redelivered.attempt, redelivered.suspicion) == (1, 1)
    assert again.latestOffset(end, ReadMaxRows(3)) == end
    assert queue.status().leased == 1
    redelivered.complete()
    again.stop()


def test_a_message_cancelled_during_its_batch_is_skipped(dsn: str, queue: Queue) -> None:
    fill(queue, 3)
    consumer = make_consumer(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    planned = consumer.partitions(FIRST, end)
    ids: Any = planned[0]
    queue.cancel([ids.ids[1]])
    rows = [row for batch in consumer.read(planned[0]) for row in batch.to_pylist()]
    assert contents(rows) == [0, 2]
    assert consumer.latestOffset(end, ReadMaxRows(3)) == end
    assert queue.status().leased == 0
    consumer.stop()


def test_an_unknown_claim_is_an_empty_batch(dsn: str, queue: Queue, connect: Connect) -> None:
    """The messages of the claim returned to their channels when their leases ended."""
    fill(queue, 3)
    consumer = make_consumer(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(3))
    connect().execute("delete from claim")
    connect().execute("update lease set unlock_at = 0")
    again = make_consumer(dsn)
    assert read(again, FIRST, end) == []
    next_end = again.latestOffset(end, ReadMaxRows(3))
    assert contents(read(again, end, next_end)) == [0, 1, 2]
    again.commit(next_end)
    assert complete_due(queue) == 0
    for one in (consumer, again):
        one.stop()


def test_large_contents_are_read_in_small_batches(
    dsn: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "READ_BYTES", 5000)
    queue.enqueue_many([NewMessage(channel="a", payload=text) for text in ["s"] * 5 + ["x" * 5000] * 35])
    consumer = make_consumer(dsn)
    end = consumer.latestOffset(FIRST, ReadMaxRows(40))
    batches = [batch for part in consumer.partitions(FIRST, end) for batch in consumer.read(part)]
    assert [batch.num_rows for batch in batches] == [1, 4, 16, 8, 4, 2, 1, 1, 1, 1, 1]
    consumer.commit(end)
    consumer.stop()
