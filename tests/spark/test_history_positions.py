"""The history stream, called as Spark calls it: every row exactly once, or a clear error."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, ClassVar

import psycopg
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from lonnymq import HistoryDropped, HistoryUnknown, Queue
from lonnymq.embedded import EmbeddedServer
from lonnymq.spark import history_stream, options
from lonnymq.spark.batch_read import HistoryBatchReader
from lonnymq.spark.history_stream import HistoryStreamReader
from tests import schema
from tests.conftest import Connect

ROW = (
    "insert into lonnymq.history"
    " (message_id, channel_id, channel, outcome, attempt, created_at, dequeue_at, ended_at)"
    " select g, 1, 'a', 'completed', 1, 0, 0, lonnymq.to_epoch(now()) from generate_series(%s::bigint, %s) g"
)

NOW = timedelta(0)


@pytest.fixture(autouse=True)
def _stop_readers() -> Iterator[None]:
    yield
    while Query.readers:
        Query.readers.pop().stop()


class Query:
    """Plays Spark's part: logs offsets, reads and commits batches, and restarts with a new reader."""

    readers: ClassVar[list[HistoryStreamReader]] = []

    def __init__(self, dsn: str, **more: str) -> None:
        self._options = {"dsn": dsn, "columns": "message_id", "rows_per_partition": "7", **more}
        self.log: list[dict[str, Any]] = []
        self.committed = 0
        self.seen: list[int] = []
        self.restart()

    def restart(self, **more: str) -> None:
        self._options |= more
        self.reader = HistoryStreamReader(options.parse_follow(self._options))
        self.readers.append(self.reader)

    def start(self, number: int) -> dict[str, Any]:
        return self.log[number - 1] if number else self.reader.initialOffset()

    def plan(self, max_rows: int | None = None) -> bool:
        """Ask for the next end offset and log it; return False if there is none."""
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
        """Read the batch that was logged last."""
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


def create_old_partition(connection: psycopg.Connection[Any], rows: int) -> str:
    """Create a partition of 1970 with rows in it."""
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


def test_writers_committing_in_reverse_order_are_read_once(dsn: str, connect: Connect) -> None:
    first, second, third = connect(), connect(), connect()
    query = Query(dsn)
    for connection in (first, second):
        connection.execute("begin")
    add(first, 1, 3)
    add(second, 4, 6)
    second.execute("commit")
    assert query.drain() == [], "a row may still appear below"
    add(third, 7, 9)
    assert query.drain() == []
    first.execute("commit")
    assert query.drain(2) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert query.drain() == []


def test_rows_read_before_a_long_transaction_are_not_read_again(dsn: str, connect: Connect) -> None:
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
def test_a_huge_transaction_is_read_in_small_batches(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 200_000)
    query = Query(dsn)
    for _ in range(3):
        assert query.plan(15)
        assert len(query.read()) == 15
        query.restart()
    # Read up to the present end of history, and no further.
    query.restart(rows_per_partition="14000")
    query.reader.prepareForTriggerAvailableNow()
    add(connection, 200_001, 200_002)
    query.drain(60_000)
    assert len(query.log) == 3 + 4
    assert query.seen == list(range(1, 200_001))
    query.restart()
    assert query.drain() == [200_001, 200_002]


def test_a_logged_but_unfinished_batch_is_read_again_unchanged(dsn: str, connect: Connect) -> None:
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


def test_two_queries_with_one_reader_name_keep_their_own_positions(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 10)
    first, second = Query(dsn), Query(dsn)
    assert first.drain() == list(range(1, 11))
    assert second.plan(4)
    # The first query commits everything under the shared name before the second has read its first batch.
    assert not first.plan()
    second.restart()
    assert second.read() == [1, 2, 3, 4]
    add(connection, 11, 12)
    assert first.drain() == [11, 12]
    assert second.drain() == list(range(5, 13))


def test_latest_starts_at_the_first_poll_even_if_history_is_empty(dsn: str, connect: Connect) -> None:
    connection = connect()
    query = Query(dsn, starting="latest")
    assert query.plan()
    assert query.read() == []
    add(connection, 1, 3)
    assert query.drain() == [1, 2, 3]


def test_available_now_ends_while_others_keep_writing(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 10)
    query = Query(dsn)
    query.reader.prepareForTriggerAvailableNow()
    add(connection, 11, 20)
    assert query.drain(4) == list(range(1, 11))
    query.restart()
    assert query.drain() == list(range(11, 21))


def test_attempts_in_the_overflow_are_read_once_they_are_moved(dsn: str, connect: Connect) -> None:
    connection = connect()
    add(connection, 1, 2)
    connection.execute(ROW.replace("lonnymq.history", "lonnymq.history_overflow"), (3, 4))
    add(connection, 5, 6)
    query = Query(dsn)
    assert query.drain() == [1, 2, 5, 6]
    connection.execute("select history_prepare()")
    assert query.drain() == [3, 4]


def test_a_server_crash_neither_loses_nor_repeats_rows(own_server: Callable[..., EmbeddedServer]) -> None:
    """A crashed server reuses transaction ids, so the end of a batch must be durable before Spark sees it."""
    server = own_server(fsync=True, settings={"wal_writer_delay": "10s"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    query = Query(server.dsn)
    expected: list[int] = []
    for crash in range(3):
        with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
            # Rows that are not durable may be lost in the crash, but only if nobody has read them.
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
    day = create_old_partition(connection, 5)
    query = Query(dsn, reader="archive")
    assert query.plan(2)
    assert queue.history.prune(NOW) == []
    [reader] = queue.history.readers()
    assert (reader.name, reader.behind) == ("archive", 5)
    query.read()
    query.drain()
    # The last batch counts as processed once Spark asks for more or commits it.
    query.reader.commit(query.log[-1])
    assert queue.history.prune(NOW) == [day]
    add(connection, 1, 2)
    assert query.drain() == [1, 2]
    assert query.seen == [-1, -2, -3, -4, -5, 1, 2]


def test_a_reader_whose_rows_were_dropped_gets_an_error(queue: Queue, dsn: str, connect: Connect) -> None:
    connection = connect()
    day = create_old_partition(connection, 5)
    query = Query(dsn, reader="archive")
    assert query.plan(2)
    assert queue.history.forget("archive")
    assert not queue.history.forget("archive")
    assert queue.history.prune(NOW) == [day]
    with pytest.raises(HistoryUnknown, match="no such reader"):
        query.plan()
    # A new reader of that name starts with the remaining rows.
    Query(dsn, reader="archive").drain()
    with pytest.raises((HistoryDropped, HistoryUnknown)):
        query.read()
    with pytest.raises((HistoryDropped, HistoryUnknown)):
        query.plan()


def test_rows_dropped_between_planning_and_reading_raise_an_error(dsn: str, connect: Connect) -> None:
    connection = connect()
    day = create_old_partition(connection, 5)
    query = Query(dsn)
    assert query.plan()
    partitions = query.reader.partitions(query.start(0), query.log[0])
    connection.execute(f"drop table {day}".encode())
    with pytest.raises(HistoryDropped, match=r"history has 0 rows .* but had 5"):
        list(query.reader.read(partitions[0]))


def test_a_restored_database_is_recognised(dsn: str, connect: Connect, queue: Queue) -> None:
    connection = connect()
    add(connection, 1, 5)
    query = Query(dsn)
    query.drain()
    position = query.log[-1]
    assert isinstance(position["origin"], str)
    # The position is from another server or timeline.
    query.log[-1] = {**position, "origin": "1/00000002/3"}
    add(connection, 6, 9)
    with pytest.raises(HistoryUnknown, match="it is from history 1/00000002/3"):
        query.plan()
    # After a failover the position is valid if this database recorded it.
    query.restart(rebase="true")
    assert query.drain() == [6, 7, 8, 9]
    # An older backup: the reader was further than this database recorded.
    connection.execute("update history_reader set xid = xid - 1")
    with pytest.raises(HistoryUnknown, match="has not given that position to the reader"):
        query.plan()
    # An older backup: transaction ids have not reached the position yet.
    query.log[-1] = {**query.log[-1], "xid": 10**15}
    with pytest.raises(HistoryUnknown, match="this server has only reached transaction"):
        query.plan()


def test_a_reinstalled_queue_is_recognised_as_another_one(dsn: str, queue: Queue) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        add(connection, 1, 5)
        query = Query(dsn)
        query.drain()
        queue.uninstall()
        queue.install()
        add(connection, 6, 9)
    with pytest.raises(HistoryUnknown):
        query.plan()


def test_the_transaction_that_holds_readers_back_is_named(
    queue: Queue, dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_stream, "BLOCKER_CHECK_S", 0.0)
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
        assert f"an open transaction holds back the reading of history: {found}" in caplog.text
    assert queue.history.blocker() is None


def test_a_restored_dump_must_be_rebased_and_is_then_read_once(
    queue: Queue, dsn: str, connect: Connect
) -> None:
    """A new server has assigned fewer transaction ids; simulated by raising all recorded ids."""
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
    batch: Any = HistoryBatchReader(options.parse_read({"dsn": dsn}))
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
    # No reader of this database has read the rows, so they are kept.
    assert [reader.behind for reader in queue.history.readers()] == [7]
    new = Query(dsn, reader="archive")
    add(connection, 8, 9)
    assert sorted(new.drain(4)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert queue.history.rebase() == 0


def test_a_position_that_the_new_server_reached_later_is_refused(dsn: str, connect: Connect) -> None:
    """After a restored dump, transaction ids reached the reader's position with rows that it has not read."""
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
