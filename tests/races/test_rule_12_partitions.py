"""Rule 12: partitions of history are attached and detached while completions are open, without blocking."""

import psycopg
import pytest

from tests.conftest import Connect
from tests.races.sessions import Session, complete, create, dequeue, drop_partitions, value

pytestmark = pytest.mark.race


def open_completer(connect: Connect) -> Session:
    """Return a session that has written to history and not committed."""
    session = connect()
    session.execute("""select queue_set('{"history": "metadata"}')""")
    create(session, "open")
    session.execute("begin")
    complete(session, dequeue(session))
    return session


def connect_with_lock_timeout(connect: Connect) -> Session:
    session = connect()
    session.execute("set lock_timeout = '50ms'")
    return session


def use_history_without_partitions(session: Session) -> None:
    session.execute("""select queue_set('{"history": "metadata"}')""")
    drop_partitions(session)


def work_two(session: Session) -> None:
    create(session, "a", 2)
    for one in dequeue(session, 2):
        assert complete(session, [one]) == ["completed"]


def test_history_prepare_does_not_block_and_is_not_blocked(connect: Connect) -> None:
    completer, preparer, worker = (
        open_completer(connect),
        connect_with_lock_timeout(connect),
        connect_with_lock_timeout(connect),
    )
    preparer.execute("begin")
    days = value(preparer, "select count(*) from history_partition")
    assert value(preparer, "select history_prepare(%s)", days + 5) > 0
    work_two(worker)
    assert value(worker, "select count(*) from history") == 2
    preparer.execute("commit")
    completer.execute("commit")
    assert value(worker, "select count(*) from history") == 3


def test_detaching_waits_for_open_completions_and_blocks_nobody(
    connect: Connect,
) -> None:
    dropper, worker = connect_with_lock_timeout(connect), connect_with_lock_timeout(connect)
    dropper.execute("create table history_old (like history including defaults)")
    dropper.execute("alter table history attach partition history_old for values from (0) to (86400000)")
    completer = open_completer(connect)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        dropper.execute("alter table history detach partition history_old concurrently")
    work_two(worker)
    completer.execute("commit")
    dropper.execute("alter table history detach partition history_old finalize")
    work_two(worker)
    assert value(worker, "select count(*) from history") == 5


def test_attempts_that_end_without_a_partition_are_kept_and_moved(connect: Connect) -> None:
    session = connect()
    use_history_without_partitions(session)
    create(session, "a", 3)
    complete(session, dequeue(session, 3))
    assert value(session, "select count(*) from history_overflow") == 3
    session.execute("select history_prepare(1)")
    assert value(session, "select count(*) from history_overflow") == 0
    assert value(session, "select count(*) from history") == 3


def test_history_prepare_loses_no_uncommitted_overflow_rows(connect: Connect) -> None:
    session, completer, preparer = connect(), connect(), connect_with_lock_timeout(connect)
    use_history_without_partitions(session)
    create(session, "a", 2)
    first, second = dequeue(session, 2)
    completer.execute("begin")
    complete(completer, [first])
    complete(session, [second])
    preparer.execute("select history_prepare(1)")
    completer.execute("commit")
    preparer.execute("select history_prepare(1)")
    rows = value(session, "select count(*) from history") + value(
        session, "select count(*) from history_overflow"
    )
    assert rows == 2
    assert value(session, "select count(*) from history_overflow") == 0, "rows remain in the overflow"
