"""The writer, called as Spark calls it, where attempts die, replies get lost and the server crashes."""

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
from lonnymq.spark.options import Connect, WriteOptions
from lonnymq.spark.writer import BatchWriter, Staged, StreamWriter
from tests import schema
from tests.conftest import Connect as Open
from tests.proxy import Proxy
from tests.spark.conftest import work


def batch(first: int, rows: int, channel: str = "a") -> pa.RecordBatch:
    contents = [str(number).encode() for number in range(first, first + rows)]
    return pa.record_batch({"channel": pa.array([channel] * rows), "content": pa.array(contents)})


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"select count(*) from {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def messages(connection: psycopg.Connection[Any]) -> int:
    """Return how many are staged."""
    row = connection.execute("select coalesce(sum(cardinality(contents)), 0) from stage").fetchone()
    assert row is not None
    return int(row[0])


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_only_the_winning_attempts_are_published_and_the_others_removed(
    target: Connect, queue: Queue, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speculative duplicates, and attempts that failed after they had staged, in several transactions."""
    monkeypatch.setattr(writers, "COPY_BYTES", 500)
    writer = BatchWriter(WriteOptions(target, None, None))
    failed = writer.write(iter([batch(0, 50), batch(50, 50)]))
    first = writer.write(iter([batch(0, 50), batch(50, 50)]))
    second = writer.write(iter([batch(100, 10)]))
    duplicate = writer.write(iter([batch(100, 10)]))
    empty = writer.write(iter([]))
    assert isinstance(failed, Staged)
    assert isinstance(duplicate, Staged)
    assert (messages(connect()), queue.status().waiting) == (220, 0)
    writer.commit([first, empty, second])
    assert count(connect(), "stage") == 0
    assert [message.payload for message in queue.dequeue(500)] == list(range(110))


def test_a_job_with_a_name_is_done_once_and_its_leavings_are_removed(
    target: Connect, queue: Queue, connect: Open
) -> None:
    # A driver that died before it published: nobody will come for these rows, but the next run of the job.
    BatchWriter(WriteOptions(target, "nightly", None)).write(iter([batch(0, 5)]))
    for _ in range(2):
        writer = BatchWriter(WriteOptions(target, "nightly", None))
        writer.commit([writer.write(iter([batch(0, 5)]))])
    assert (queue.status().waiting, count(connect(), "stage")) == (5, 0)


def test_stale_rows_of_a_job_that_never_came_back_are_removed(
    target: Connect, queue: Queue, connect: Open
) -> None:
    BatchWriter(WriteOptions(target, "never again", None)).write(iter([batch(0, 5)]))
    connect().execute("update stage set staged_at = now() - interval '2 days'")
    writer = BatchWriter(WriteOptions(target, "another", None))
    writer.commit([writer.write(iter([batch(0, 3)]))])
    assert (queue.status().waiting, count(connect(), "stage")) == (3, 0)


def test_nobody_waits_for_a_large_publication_and_all_have_their_turns_right_after(
    dsn: str, target: Connect, queue: Queue, connect: Open
) -> None:
    channels = ("big", "b", "c", "d")
    writer = BatchWriter(WriteOptions(target, "large", None))
    staged: Any = writer.write(iter([batch(0, 20_000, channel="big")]))
    publisher = connect()
    publisher.execute("begin")
    publisher.execute("select message_publish('large', %s::uuid[], %s)", ([staged.part], [staged.rows]))
    with Queue(conninfo.make_conninfo(dsn, options="-c lock_timeout=200ms")) as worker:
        # Whoever waited for the open publication would raise.
        worker.enqueue_many([NewMessage(channel=name, payload=n) for n in range(10) for name in channels])
        taken = [message for _ in range(5) for message in worker.dequeue(4)]
        worker.complete(taken)
        assert len(taken) == 20
        publisher.execute("commit")
        turns = Counter(message.channel for _ in range(5) for message in worker.dequeue(4))
    assert {name: turns[name] for name in channels} == dict.fromkeys(channels, 5)
    assert queue.status().waiting == 20_000


def test_a_lost_reply_to_commit_is_asked_for_again(dsn: str, queue: Queue, connect: Open) -> None:
    with Proxy(dsn) as proxy:
        writer = BatchWriter(WriteOptions(Connect(proxy.dsn), "once", None))
        staged = writer.write(iter([batch(0, 7)]))
        holder = connect()
        holder.execute("begin")
        holder.execute(
            "insert into publication (role, name, created, duplicates) values (session_user, 'once', 0, 0)"
        )
        committing = threading.Thread(target=writer.commit, args=[[staged]])
        committing.start()
        until(lambda: waits(connect()))
        proxy.stall()
        holder.execute("rollback")
        until(lambda: queue.status().waiting == 7)
        proxy.reset_connections()
        proxy.resume()
        committing.join(60)
        assert not committing.is_alive()
    assert queue.status().waiting == 7


def waits(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    ).fetchall()
    return bool(found)


def test_abort_after_a_commit_touches_nothing_that_is_published(target: Connect, queue: Queue) -> None:
    """Spark aborts with all messages when commit() raises, also if that was only its reply."""
    writer = BatchWriter(WriteOptions(target, None, None))
    staged = writer.write(iter([batch(0, 7)]))
    writer.commit([staged])
    writer.abort([staged, None])
    assert work(queue) == 7


def test_names_of_any_script_are_written_and_a_nul_is_told(target: Connect, queue: Queue) -> None:
    writer = BatchWriter(WriteOptions(target, None, None))
    with pytest.raises(InvalidArgument, match="channel or key has a character that no text may have"):
        writer.write(iter([batch(0, 1, channel="a\0b")]))
    odd = pa.record_batch({"channel": pa.array(["日本 ü'\""]), "content": pa.array([b"a\0b" + b"x" * 2**25])})
    writer.commit([writer.write(iter([odd]))])
    [message] = queue.dequeue(5)
    assert (message.channel, message.content) == ("日本 ü'\"", b"a\0b" + b"x" * 2**25)


def test_abort_removes_what_was_staged(target: Connect, queue: Queue, connect: Open) -> None:
    writer = BatchWriter(WriteOptions(target, None, None))
    bad = writer.write(iter([batch(0, 7), batch(7, 1, channel="")]))
    with pytest.raises(InvalidArgument, match="channel must be"):
        writer.commit([bad])
    writer.abort([bad, None])
    writer.abort([None])
    assert (queue.status().waiting, count(connect(), "stage")) == (0, 0)


def test_a_crash_between_staging_and_publishing_is_an_error_and_never_an_empty_success(
    own_server: Callable[..., EmbeddedServer],
) -> None:
    server = own_server(fsync=True)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    target = Connect(server.dsn)
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
    target: Connect, queue: Queue, connect: Open
) -> None:
    def publish(number: int, rows: int) -> None:
        # Spark makes a new writer for each.
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
    # A job whose name is that of the stream's rows in the stage: neither makes the other forgotten.
    for _ in range(2):
        job = BatchWriter(WriteOptions(target, "stream orders", None))
        job.commit([job.write(iter([batch(0, 5)]))])
        with pytest.raises(InvalidArgument, match="a bulk load has the name 'stream orders'"):
            publish(8, 1)
    assert queue.status().waiting == 13
