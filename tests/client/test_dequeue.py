"""Dequeueing: messages are leased, with their contents, to one worker at a time."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from lonnymq import Batch, DequeueOutcome, LeasedMessage, NewMessage, Queue, WrongIsolationLevel
from lonnymq.calls import message as calls
from lonnymq.client.sync.receiver import Receiver
from tests.client.conftest import OpenConnection
from tests.conftest import Connect


def test_a_leased_message_is_not_leased_again(queue: Any) -> None:
    queue.enqueue("a", 1)
    assert len(queue.dequeue()) == 1
    assert len(queue.dequeue()) == 0


def test_an_empty_batch_says_when_to_dequeue_again(queue: Any) -> None:
    queue.enqueue("a", 1, delay=30)
    batch = queue.dequeue()
    assert (batch.outcome, len(batch)) == (DequeueOutcome.EMPTY, 0)
    assert 0 <= batch.wait_ms <= 30_000


def test_a_batch_is_a_sequence(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    batch = queue.dequeue(10)
    assert isinstance(batch, Batch)
    assert (len(batch), batch[-1].payload, [m.payload for m in batch[:2]]) == (3, 2, [0, 1])
    assert batch.outcome is DequeueOutcome.LEASED


def test_large_contents_are_complete(queue: Any) -> None:
    contents = [bytes([n]) * 3_000_000 for n in range(8)]
    for content in contents:
        queue.enqueue("a", content)
    assert [message.content for message in queue.dequeue(10)] == contents


def test_a_large_state_is_complete(queue: Any) -> None:
    queue.enqueue("a", b"x" * 1_000_000)
    queue.dequeue()[0].defer(state=b"y" * 1_000_000)
    message = queue.dequeue()[0]
    assert (message.content, message.state_content) == (b"x" * 1_000_000, b"y" * 1_000_000)


def test_a_message_cancelled_before_its_content_is_read_is_dropped(
    server: object, dsn: str, connect: Connect
) -> None:
    with Queue(dsn) as queue:
        kept = queue.enqueue("a", b"x" * 2_000_000)
        gone = queue.enqueue("a", b"y" * 2_000_000)
        connection = connect()
        call = calls.dequeue(10, 30_000, None, True, False, LeasedMessage, {})
        reply = queue.caller.execute(call, connection)
        assert set(reply.unread) >= {gone.id}
        assert queue.cancel([gone.id or 0]) == ["cancelled"]
        read = Receiver(queue.caller)._read(reply, 10.0, connection)
        assert [lease.id for lease in read.leases] == [kept.id]
        assert connect().execute("select message_id from lease").fetchall() == [(kept.id,)]


def test_a_rolled_back_dequeue_leaves_its_messages(queue: Any, open_connection: OpenConnection) -> None:
    queue.enqueue("a", 1)
    connection = open_connection()
    assert len(queue.dequeue(connection=connection)) == 1
    connection.rollback()
    assert len(queue.dequeue()) == 1


def test_dequeueing_in_another_isolation_level_is_refused(
    queue: Any, open_connection: OpenConnection
) -> None:
    connection = open_connection()
    connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    with pytest.raises(WrongIsolationLevel, match="READ COMMITTED"):
        queue.dequeue(connection=connection)


def test_an_expired_lease_is_delivered_again(queue: Any, connect: Connect) -> None:
    queue.enqueue("a", 1)
    first = queue.dequeue(lease_s=0.001)[0]
    again = queue.dequeue(wait=10)[0]
    assert (again.id, again.attempt) == (first.id, 2)
    assert first.complete() == "lease_lost"
    assert again.complete() == "completed"


def test_a_lease_shows_its_worker(queue: Any, connect: Connect) -> None:
    queue.enqueue("a", 1)
    queue.dequeue(worker="host-7")
    assert connect().execute("select worker from lease_status").fetchall() == [("host-7",)]


def test_synchronous_commit_is_on_again_after_a_dequeue(dsn: str) -> None:
    """A dequeue on our own connection turns it off for its own transaction only."""
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        queue.dequeue()
        with queue.caller.source.connection() as connection:
            assert connection.execute("show synchronous_commit").fetchone() == ("on",)


def test_tenants_take_turns(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="large", payload=n) for n in range(1000)])
    queue.enqueue("small", 1)
    # New channels are served alternately with those that have been served.
    channels = [message.channel for _ in range(3) for message in queue.dequeue(1)]
    assert "small" in channels


def test_two_queues_in_one_database_are_separate(
    open_queue: Callable[..., Any],
) -> None:
    one, other = open_queue(), open_queue(schema="weird \"; drop schema lonnymq; -- % {x} '")
    other.install()
    one.enqueue("a", "one")
    other.enqueue("a", "other")
    assert [message.payload for message in one.dequeue(10)] == ["one"]
    assert [message.payload for message in other.dequeue(10)] == ["other"]
    assert other.check() == []
