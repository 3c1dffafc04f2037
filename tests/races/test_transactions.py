"""Calls in the caller's transactions: savepoints, several dequeues, two queues, two-phase commit."""

from collections.abc import Callable

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.conftest import Connect, Database
from tests.races.sessions import (
    ask,
    check,
    complete,
    create,
    create_in,
    dequeue,
    drain,
    end,
    value,
    work_until,
)

pytestmark = pytest.mark.race


def test_a_dequeue_rolled_back_to_a_savepoint_changes_nothing(connect: Connect) -> None:
    session, other = connect(), connect()
    session.execute("""select channel_set('a', '{"max_concurrency": 2}')""")
    ids = create(session, "a", 5)
    session.execute("begin")
    kept = dequeue(session)
    session.execute("savepoint here")
    undone = dequeue(session)
    session.execute("rollback to here")
    again = dequeue(session)
    assert [one.id for one in kept + undone + again] == [ids[0], ids[1], ids[1]]
    assert dequeue(session) == []
    session.execute("commit")
    assert end(other, "complete", undone) == ["lease_lost"]
    assert complete(other, kept + again) == ["completed"] * 2
    assert [one.id for one in drain(other)] == ids[2:]


def test_a_failed_block_in_a_function_reverts_its_dequeue(connect: Connect) -> None:
    session = connect()
    ids = create(session, "a", 3)
    session.execute(
        "do $$ begin perform * from lonnymq.message_dequeue(2); raise exception 'no';"
        " exception when others then null; end $$"
    )
    assert check(session) == []
    assert [one.id for one in drain(session)] == ids


def test_a_long_transaction_may_dequeue_and_acknowledge_many_times(connect: Connect) -> None:
    session, other = connect(), connect()
    session.execute("""select channel_set('capped', '{"max_concurrency": 2}')""")
    create_in(session, ["a", "b", "capped"] * 20)
    session.execute("begin")
    worked = []
    for verb in ["complete", "defer", "give_back", "bury", "complete"] * 6:
        leased = dequeue(session, 3)
        assert set(end(session, verb, leased)) <= {"completed", "deferred", "given_back", "buried"}
        worked += leased
    assert len(worked) >= 60
    session.execute("commit")
    assert check(other) == []
    drain(other)
    assert value(other, "select count(*) from message") == 0


def test_a_transaction_may_dequeue_and_complete_its_own_messages(connect: Connect) -> None:
    session, other = connect(), connect()
    session.execute("begin")
    create(session, "new", 3)
    leased = dequeue(session, 2)
    assert complete(session, leased[:1]) == ["completed"]
    assert ask(other).outcome == "empty"
    session.execute("commit")
    assert end(other, "complete", leased[1:]) == ["completed"]
    assert len(drain(other)) == 1


def test_two_queues_in_one_database_are_independent(database: Database) -> None:
    dsn = database(is_empty=True)
    with psycopg.connect(dsn, autocommit=True) as session:
        for name in ("one", "two"):
            schema.install(session, schema=name)
        for n in range(10):
            for name in ("one", "two"):
                session.execute(f"set search_path = {name}")
                create(session, "a", 2 if name == "one" else 1)
                if n % 3 == 0:
                    complete(session, dequeue(session))
        session.execute("begin")
        session.execute("set local search_path = one")
        assert dequeue(session)
        with psycopg.connect(dsn, autocommit=True, options="-c search_path=two") as other:
            assert len(drain(other)) == 6
            assert value(other, "select queue_event()") != value(session, "select queue_event()")
        session.execute("rollback")
        session.execute("set search_path = one")
        assert len(drain(session)) == 16


def test_a_session_works_after_its_queue_is_reinstalled(database: Database) -> None:
    """The queue is dropped and reinstalled while a session keeps plans and hints of the old one."""
    dsn = database(is_empty=True)
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=lonnymq") as session:
        for _ in range(4):
            schema.install(session)
            create(session, "a", 30)
            create(session, "b", 30)
            assert len(work_until(session, lambda worked: len(worked) == 60, limit=7)) == 60
            assert check(session) == []
            session.execute("drop schema lonnymq cascade")


def test_a_prepared_transaction_hides_only_its_own_messages(connect: Connect, own_two_phase: str) -> None:
    session, worker = connect(own_two_phase), connect(own_two_phase)
    create(session, "a", 2)
    session.execute("begin")
    hidden = create(session, "a", 2)
    session.execute("prepare transaction 'later'")
    assert len(drain(worker)) == 2
    create(worker, "a")
    assert len(drain(worker)) == 1
    session.execute("commit prepared 'later'")
    assert [one.id for one in drain(worker)] == hidden
    assert check(worker) == []


@pytest.fixture
def own_two_phase(own_server: Callable[..., EmbeddedServer]) -> str:
    server = own_server(fsync=False, settings={"max_prepared_transactions": "5"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    return server.dsn
