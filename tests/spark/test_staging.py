"""The writer, called as Spark calls it, with failed attempts, lost replies and server crashes."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import conninfo

from lonnymq import InvalidArgument, NewMessage, PublicationIncomplete, Queue, StreamRestarted
from lonnymq.embedded import EmbeddedServer
from lonnymq.spark import writer as writers
from lonnymq.spark.options import ConnectionOptions, WriteOptions
from lonnymq.spark.writer import BatchWriter, StagedPart, StreamWriter
from tests import schema
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.spark.conftest import complete_due


def batch(first: int, rows: int, channel: str = "a") -> pa.RecordBatch:
    contents = [str(number).encode() for number in range(first, first + rows)]
    return pa.record_batch({"channel": pa.array([channel] * rows), "content": pa.array(contents)})


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"select count(*) from {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def staged_messages(connection: psycopg.Connection[Any]) -> int:
    """Return how many messages are staged."""
    row = connection.execute("select coalesce(sum(cardinality(contents)), 0) from stage").fetchone()
    assert row is not None
    return int(row[0])


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_only_winning_attempts_are_published(
    target: ConnectionOptions, queue: Queue, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other attempts are speculative copies and attempts that failed after staging."""
    monkeypatch.setattr(writers, "TRANSACTION_BYTES", 500)
    writer = BatchWriter(WriteOptions(target, None, None))
    failed = writer.write(iter([batch(0, 50), batch(50, 50)]))
    first = writer.write(iter([batch(0, 50), batch(50, 50)]))
    second = writer.write(iter([batch(100, 10)]))
    duplicate = writer.write(iter([batch(100, 10)]))
    empty = writer.write(iter([]))
    assert isinstance(failed, StagedPart)
    assert isinstance(duplicate, StagedPart)
    assert (staged_messages(connect()), queue.status().waiting) == (220, 0)
    writer.commit([first, empty, second])
    assert count(connect(), "stage") == 0
    assert [message.payload for message in queue.dequeue(500)] == list(range(110))


def test_a_named_job_publishes_once_and_removes_its_leftovers(
    target: ConnectionOptions, queue: Queue, connect: Connect
) -> None:
    # Rows of a driver that died before publishing stay until the next run of the job.
    BatchWriter(WriteOptions(target, "nightly", None)).write(iter([batch(0, 5)]))
    for _ in range(2):
        writer = BatchWriter(WriteOptions(target, "nightly", None))
        writer.commit([writer.write(iter([batch(0, 5)]))])
    assert (queue.status().waiting, count(connect(), "stage")) == (5, 0)


def test_old_staged_rows_of_an_abandoned_job_are_removed(
    target: ConnectionOptions, queue: Queue, connect: Connect
) -> None:
    BatchWriter(WriteOptions(target, "never again", None)).write(iter([batch(0, 5)]))
    connect().execute("update stage set staged_at = now() - interval '2 days'")
    writer = BatchWriter(WriteOptions(target, "another", None))
    writer.commit([writer.write(iter([batch(0, 3)]))])
    assert (queue.status().waiting, count(connect(), "stage")) == (3, 0)


def test_a_large_publication_delays_nobody_and_gets_no_more_than_its_turn(
    dsn: str, target: ConnectionOptions, queue: Queue, connect: Connect
) -> None:
    channels = ("big", "b", "c", "d")
    writer = BatchWriter(WriteOptions(target, "large", None))
    staged: Any = writer.write(iter([batch(0, 20_000, channel="big")]))
    publisher = connect()
    publisher.execute("begin")
    publisher.execute("select message_publish('large', %s::uuid[], %s)", ([staged.part], [staged.rows]))
    with Queue(conninfo.make_conninfo(dsn, options="-c lock_timeout=200ms")) as worker:
        # A call that waited for the open publication would fail.
        worker.enqueue_many([NewMessage(channel=name, payload=n) for n in range(10) for name in channels])
        taken = [message for _ in range(5) for message in worker.dequeue(4)]
        worker.complete(taken)
        assert len(taken) == 20
        publisher.execute("commit")
        turns = Counter(message.channel for _ in range(5) for message in worker.dequeue(4))
    assert {name: turns[name] for name in channels} == dict.fromkeys(channels, 5)
    assert queue.status().waiting == 20_000


def test_publishing_again_after_a_lost_commit_reply_adds_nothing(
    dsn: str, queue: Queue, connect: Connect
) -> None:
    with Proxy(dsn) as proxy:
        writer = BatchWriter(WriteOptions(ConnectionOptions(proxy.dsn), "once", None))
        staged = writer.write(iter([batch(0, 7)]))
        holder = connect()
        holder.execute("begin")
        holder.execute(
            "insert into publication (role, name, created, duplicates) values (session_user, 'once', 0, 0)"
        )
        committing = threading.Thread(target=writer.commit, args=[[staged]])
        committing.start()
        wait_until(lambda: waits_for_lock(connect()))
        proxy.stall()
        holder.execute("rollback")
        wait_until(lambda: queue.status().waiting == 7)
        proxy.reset_connections()
        proxy.resume()
        committing.join(60)
        assert not committing.is_alive()
    assert queue.status().waiting == 7


def waits_for_lock(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    ).fetchall()
    return bool(found)


def test_abort_after_a_commit_keeps_the_published_messages(target: ConnectionOptions, queue: Queue) -> None:
    """Spark aborts with all messages when commit() raises, even if only the reply was lost."""
    writer = BatchWriter(WriteOptions(target, None, None))
    staged = writer.write(iter([batch(0, 7)]))
    writer.commit([staged])
    writer.abort([staged, None])
    assert complete_due(queue) == 7


def test_channel_names_may_use_any_script_but_no_nul(target: ConnectionOptions, queue: Queue) -> None:
    writer = BatchWriter(WriteOptions(target, None, None))
    with pytest.raises(InvalidArgument, match="channel or key contains a NUL character"):
        writer.write(iter([batch(0, 1, channel="a\0b")]))
    odd = pa.record_batch({"channel": pa.array(["日本 ü'\""]), "content": pa.array([b"a\0b" + b"x" * 2**25])})
    writer.commit([writer.write(iter([odd]))])
    [message] = queue.dequeue(5)
    assert (message.channel, message.content) == ("日本 ü'\"", b"a\0b" + b"x" * 2**25)


def test_abort_removes_staged_rows(target: ConnectionOptions, queue: Queue, connect: Connect) -> None:
    writer = BatchWriter(WriteOptions(target, None, None))
    bad = writer.write(iter([batch(0, 7), batch(7, 1, channel="")]))
    with pytest.raises(InvalidArgument, match="channel must be"):
        writer.commit([bad])
    writer.abort([bad, None])
    writer.abort([None])
    assert (queue.status().waiting, count(connect(), "stage")) == (0, 0)


def test_a_server_crash_between_staging_and_publishing_is_an_error(
    own_server: Callable[..., EmbeddedServer],
) -> None:
    server = own_server(fsync=True)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    target = ConnectionOptions(server.dsn)
    writer = BatchWriter(WriteOptions(target, "j", None))
    stream = StreamWriter(WriteOptions(target, None, "s"))
    staged = writer.write(iter([batch(0, 7)]))
    streamed = stream.write(iter([batch(0, 7)]))
    server.kill()
    server.start()
    with pytest.raises(PublicationIncomplete, match="has 0 messages of 7"):
        writer.commit([staged])
    with pytest.raises(PublicationIncomplete, match="has 0 messages of 7"):
        stream.commit([streamed], 0)
    with Queue(server.dsn) as queue:
        assert queue.status().waiting == 0
        writer.commit([writer.write(iter([batch(0, 7)]))])
        stream.commit([stream.write(iter([batch(0, 7)]))], 0)
        assert queue.status().waiting == 14


def test_a_stream_publishes_each_batch_once_and_never_goes_back(
    target: ConnectionOptions, queue: Queue, connect: Connect
) -> None:
    def publish(number: int, rows: int) -> None:
        # Spark makes a new writer for each batch.
        writer = StreamWriter(WriteOptions(target, None, "orders"))
        writer.commit([writer.write(iter([batch(0, rows)]))], number)

    publish(0, 3)
    publish(0, 3)
    publish(1, 0)
    publish(2, 4)
    publish(2, 4)
    publish(7, 1)
    with pytest.raises(StreamRestarted, match="has already published batch 7 and cannot publish batch 0"):
        publish(0, 3)
    assert queue.status().waiting == 8
    connection = connect()
    assert count(connection, "publication") == 0, "a stream leaves one row, however long it runs"
    assert count(connection, "stream") == 1
    # A job with the name that the stream uses in the stage: neither replaces the other's record.
    for _ in range(2):
        job = BatchWriter(WriteOptions(target, "stream orders", None))
        job.commit([job.write(iter([batch(0, 5)]))])
        with pytest.raises(InvalidArgument, match="a bulk load has the name 'stream orders'"):
            publish(8, 1)
    assert queue.status().waiting == 13
