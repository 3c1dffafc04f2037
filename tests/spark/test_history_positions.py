"""The reader of history, called as Spark calls it: nothing missed, nothing twice, or a clear error."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, ClassVar

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from lonnymq import HistoryDropped, HistoryUnknown, Queue
from lonnymq.embedded import EmbeddedServer
from lonnymq.spark import options, stream
from lonnymq.spark.reader import HistoryReader
from lonnymq.spark.stream import HistoryStreamReader
from tests import schema
from tests.conftest import Connect

ROW = (
    "insert into lonnymq.history"
    " (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, ended_at)"
    " select g, 1, 'a', 'completed', 1, 0, 0, lonnymq.to_epoch(now()) from generate_series(%s::bigint, %s) g"
)

NOW = timedelta(0)


@pytest.fixture(autouse=True)
def _stops_readers() -> Iterator[None]:
    yield
    while Query.readers:
        Query.readers.pop().stop()


class Query:
    """Spark's part: offsets in a log, batches read and committed, restarts with a new reader."""

    readers: ClassVar[list[HistoryStreamReader]] = []

    def __init__(self, dsn: str, **more: str) -> None:
        self._given = {"dsn": dsn, "columns": "message_id", "rows_per_partition": "7", **more}
        self.log: list[dict[str, Any]] = []
        self.committed = 0
        self.seen: list[int] = []
        self.restart()

    def restart(self, **more: str) -> None:
        self._given |= more
        self.reader = HistoryStreamReader(options.follow(self._given))
        self.readers.append(self.reader)

    def start(self, number: int) -> dict[str, Any]:
        return self.log[number - 1] if number else self.reader.initialOffset()

    def plan(self, max_rows: int | None = None) -> bool:
        """Ask for the next end and log it; False if there is none."""
        start = self.start(len(self.log))
        limit = ReadAllAvailable() if max_rows is None else ReadMaxRows(max_rows)
        end = self.reader.latestOffset(start, limit)
        if end == start:
            return False
        self.log.append(end)
        if len(self.log) > 1:
            self.reader.commit(self.log[-2])
        return True

    def read(self) -> list[int]:
        """Read the last batch that was logged."""
        number = len(self.log) - 1
        rows = [
            message_id
            for partition in self.reader.partitions(self.start(number), self.log[number])
            for batch in self.reader.read(partition)
            for message_id in batch.column(0).to_pylist()
        ]
        self.seen += rows
        self.committed = len(self.log)
        return rows

    def drain(self, max_rows: int | None = None) -> list[int]:
        rows: list[int] = []
        while self.plan(max_rows):
            rows += self.read()
        return rows


def add(connection: psycopg.Connection[Any], first: int, last: int) -> None:
    connection.execute(ROW, (first, last))


def old_day(connection: psycopg.Connection[Any], rows: int) -> str:
    """Make a partition of 1970 with rows in it."""
    connection.execute("create table history_19700102 (like history including defaults)")
    connection.execute("create index on history_19700102 (xid, id)")
    connection.execute(
        "alter table history attach partition history_19700102 for values from (86400000) to (172800000)"
    )
    connection.execute(
        "insert into history (message_id, channel_id, outcome, attempt, created_at, dequeue_at, ended_at)"
        " select -g, 1, 'completed', 1, 0, 0, 86400000 from generate_series(1, %s) g",
        (rows,),
    )
    return "history_19700102"


def test_writers_that_commit_in_the_opposite_order_are_read_once(dsn: str, connect: Connect) -> None:
    first, second, third = connect(), connect(), connect()
    query = Query(dsn)
    for connection in (first, second):
        connection.execute("begin")
    add(first, 1, 3)
    add(second, 4, 6)
    second.execute("commit")
    assert query.drain() == [], "a row may still come below"
    add(third, 7, 9)
    assert query.drain() == []
    first.execute("commit")
    assert query.drain(2) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert query.drain() == []


def test_what_was_read_before_a_long_writer_stays_read(dsn: str, connect: Connect) -> None:
    quick, slow = connect(), connect()
    add(quick, 1, 5)
    slow.execute("begin")
    add(slow, 100, 105)
    add(quick, 6, 10)
    query = Query(dsn)
    assert query.drain() == [1, 2, 3, 4, 5]
    slow.execute("rollback")
    assert query.drain() == [6, 7, 8, 9, 10]


@pytest.mark.slow
def test_one_huge_transaction_is_read_in_small_batches_and_slices(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 200_000)
    query = Query(dsn)
    for _ in range(3):
        assert query.plan(15)
        assert len(query.read()) == 15
        query.restart()
    # To its end as it is now, and no further.
    query.restart(rows_per_partition="14000")
    query.reader.prepareForTriggerAvailableNow()
    add(connection, 200_001, 200_002)
    query.drain(60_000)
    assert len(query.log) == 3 + 4
    assert query.seen == list(range(1, 200_001))
    query.restart()
    assert query.drain() == [200_001, 200_002]


def test_a_batch_that_was_logged_and_not_finished_is_read_again_as_it_was(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 10)
    query = Query(dsn)
    assert query.plan(4)
    add(connection, 11, 20)
    query.restart()
    assert query.read() == [1, 2, 3, 4]
    query.restart()
    assert query.read() == [1, 2, 3, 4]
    assert query.drain() == list(range(5, 21))


def test_two_queries_of_one_reader_name_do_not_move_each_other(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 10)
    first, second = Query(dsn), Query(dsn)
    assert first.drain() == list(range(1, 11))
    assert second.plan(4)
    # This one says under the same name that all is done, before the other has read its first batch.
    assert not first.plan()
    second.restart()
    assert second.read() == [1, 2, 3, 4]
    add(connection, 11, 12)
    assert first.drain() == [11, 12]
    assert second.drain() == list(range(5, 13))


def test_from_now_on_means_from_the_first_look_on_also_in_an_empty_history(
    dsn: str, connect: Connect
) -> None:
    connection = connect()
    query = Query(dsn, starting="latest")
    assert query.plan()
    assert query.read() == []
    add(connection, 1, 3)
    assert query.drain() == [1, 2, 3]


def test_available_now_ends_although_others_go_on_writing(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 10)
    query = Query(dsn)
    query.reader.prepareForTriggerAvailableNow()
    add(connection, 11, 20)
    assert query.drain(4) == list(range(1, 11))
    query.restart()
    assert query.drain() == list(range(11, 21))


def test_attempts_that_went_to_the_overflow_come_when_they_are_moved(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 2)
    connection.execute(ROW.replace("lonnymq.history", "lonnymq.history_overflow"), (3, 4))
    add(connection, 5, 6)
    query = Query(dsn)
    assert query.drain() == [1, 2, 5, 6]
    connection.execute("select history_prepare()")
    assert query.drain() == [3, 4]


def test_a_crash_of_the_server_reuses_no_position(own_server: Callable[..., EmbeddedServer]) -> None:
    """Numbers of transactions are not logged when assigned: without a durable end, rows would be lost."""
    server = own_server(fsync=True, settings={"wal_writer_delay": "10s"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    query = Query(server.dsn)
    expected: list[int] = []
    for crash in range(3):
        with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
            # Not durable: these may be gone after the crash, but not if they were read.
            connection.execute("set synchronous_commit = off")
            for number in range(5):
                add(connection, crash * 100 + number, crash * 100 + number)
                connection.execute("select pg_current_xact_id()")
            assert query.plan(3)
            connection.execute("begin")
            connection.execute("select pg_current_xact_id()")
            server.kill()
        server.start()
        query.restart()
        query.read()
        query.drain()
        expected += range(crash * 100, crash * 100 + 5)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        kept = [
            row[0] for row in connection.execute("select message_id from lonnymq.history order by xid, id")
        ]
    assert query.seen == kept
    assert set(kept) <= set(expected)
    query.reader.stop()


def test_a_day_that_a_reader_still_needs_is_not_dropped(queue: Queue, dsn: str, connect: Connect) -> None:
    connection = connect()
    day = old_day(connection, 5)
    query = Query(dsn, reader="archive")
    assert query.plan(2)
    assert queue.history.prune(NOW) == []
    [reader] = queue.history.readers()
    assert (reader.name, reader.behind) == ("archive", 5)
    query.read()
    query.drain()
    # The last batch is done when Spark asks for more, or says so.
    query.reader.commit(query.log[-1])
    assert queue.history.prune(NOW) == [day]
    add(connection, 1, 2)
    assert query.drain() == [1, 2]
    assert query.seen == [-1, -2, -3, -4, -5, 1, 2]


def test_a_reader_that_comes_back_to_dropped_rows_is_told(queue: Queue, dsn: str, connect: Connect) -> None:
    connection = connect()
    day = old_day(connection, 5)
    query = Query(dsn, reader="archive")
    assert query.plan(2)
    assert queue.history.forget("archive")
    assert not queue.history.forget("archive")
    assert queue.history.prune(NOW) == [day]
    with pytest.raises(HistoryUnknown, match="no such reader"):
        query.plan()
    # A new reader of that name begins with what is left.
    Query(dsn, reader="archive").drain()
    with pytest.raises((HistoryDropped, HistoryUnknown)):
        query.read()
    with pytest.raises((HistoryDropped, HistoryUnknown)):
        query.plan()


def test_rows_that_vanish_between_planning_and_reading_are_missed_aloud(dsn: str, connect: Connect) -> None:
    connection = connect()
    day = old_day(connection, 5)
    query = Query(dsn)
    assert query.plan()
    partitions = query.reader.partitions(query.start(0), query.log[0])
    connection.execute(f"drop table {day}".encode())
    with pytest.raises(HistoryDropped, match=r"history has 0 rows .* and had 5"):
        list(query.reader.read(partitions[0]))


def test_a_restored_database_is_recognised(dsn: str, connect: Connect, queue: Queue) -> None:
    connection = connect()
    add(connection, 1, 5)
    query = Query(dsn)
    query.drain()
    position = query.log[-1]
    assert isinstance(position["origin"], str)
    # Another server, or timeline.
    query.log[-1] = {**position, "origin": "1/00000002/3"}
    add(connection, 6, 9)
    with pytest.raises(HistoryUnknown, match="it is from history 1/00000002/3"):
        query.plan()
    # Which is right all the same if this database has seen the reader come as far: a failover.
    query.restart(rebase="true")
    assert query.drain() == [6, 7, 8, 9]
    # A backup from before: the reader has been further than this database knows.
    connection.execute("update history_reader set xid = xid - 1")
    with pytest.raises(HistoryUnknown, match="has not given that position to the reader"):
        query.plan()
    # A backup in which transactions have not come as far.
    query.log[-1] = {**query.log[-1], "xid": 10**15}
    with pytest.raises(HistoryUnknown, match="this server has only reached transaction"):
        query.plan()


def test_a_queue_that_was_made_again_is_another(dsn: str, queue: Queue) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        add(connection, 1, 5)
        query = Query(dsn)
        query.drain()
        queue.uninstall()
        queue.install()
        add(connection, 6, 9)
    with pytest.raises(HistoryUnknown):
        query.plan()


def test_who_holds_the_readers_back_is_named(
    queue: Queue, dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCKED_FOR_S", 0.0)
    assert queue.history.blocker() is None
    with psycopg.connect(dsn, application_name="long report") as slow:
        add(slow, 1, 2)
        found = queue.history.blocker()
        assert found is not None
        assert found.since is not None
        assert found.pid == slow.info.backend_pid
        assert str(found).startswith(f"pid {found.pid} (long report, ")
        [xid] = slow.execute("select pg_current_xact_id()::text::bigint").fetchone() or (None,)
        assert found.xid == xid
        assert not Query(dsn).plan()
        assert f"history waits for an open transaction: {found}" in caplog.text
    assert queue.history.blocker() is None


def test_a_dump_that_is_restored_must_be_rebased_and_then_each_row_comes_once(
    queue: Queue, dsn: str, connect: Connect
) -> None:
    """On a server that has had fewer transactions, as a new one has; made here by raising all numbers."""
    connection = connect()
    add(connection, 1, 5)
    old = Query(dsn, reader="archive")
    assert old.plan(3)
    old.read()
    ahead = 10**9
    connection.execute("update history set xid = xid + %s", (ahead,))
    connection.execute("update history_reader set xid = xid + %s, done_xid = done_xid", (ahead,))
    old.log[-1] = {**old.log[-1], "xid": old.log[-1]["xid"] + ahead, "origin": "1/00000001/3"}
    add(connection, 6, 7)
    batch: Any = HistoryReader(options.read({"dsn": dsn}))
    with pytest.raises(HistoryUnknown, match="it is from history 1"):
        old.plan()
    for attempt in (Query(dsn, reader="new").plan, batch.partitions):
        with pytest.raises(HistoryUnknown, match="its history must be rebased"):
            attempt()
    old.restart(rebase="true")
    with pytest.raises(HistoryUnknown, match="this server has only reached transaction"):
        old.plan()
    assert queue.history.rebase() == 5
    assert sum(partition.rows for partition in batch.partitions()) == 7
    with pytest.raises(HistoryUnknown):
        old.plan()
    # Nobody has read it here: it is kept until somebody has.
    assert [reader.behind for reader in queue.history.readers()] == [7]
    new = Query(dsn, reader="archive")
    add(connection, 8, 9)
    assert sorted(new.drain(4)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert queue.history.rebase() == 0


def test_a_position_that_the_server_came_to_only_later_is_not_believed(dsn: str, connect: Connect) -> None:
    """A dump was restored, and numbers ran on to where the reader was, for rows that it has not read."""
    connection = connect()
    add(connection, 1, 5)
    query = Query(dsn)
    query.drain()
    connection.execute("update history_reader set xid = xid + 3")
    query.log[-1] = {**query.log[-1], "xid": query.log[-1]["xid"] + 3, "origin": "1/00000001/3"}
    connection.execute("update history_reader set followed_at = now() - interval '1 hour'")
    for number in range(6, 12):
        add(connection, number, number)
    query.restart(rebase="true")
    with pytest.raises(HistoryUnknown, match="rows have been written below it since"):
        query.plan()
