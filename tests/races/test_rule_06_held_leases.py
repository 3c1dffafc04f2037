"""Rule 6: acknowledgements skip locked leases and report them as busy; they never wait."""

import psycopg
import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.conftest import Connect
from tests.races.sessions import complete, create, dequeue, end, value

pytestmark = pytest.mark.race

DONE = {**{action.name: action.done for action in ACTIONS}, "heartbeat": "extended"}
VERBS = list(DONE)


@pytest.mark.parametrize("open_verb", VERBS)
def test_a_locked_lease_is_busy_and_the_others_are_acknowledged(connect: Connect, open_verb: str) -> None:
    holder, session = connect(), connect()
    session.execute("set lock_timeout = '50ms'")
    for verb in VERBS:
        create(session, verb, 4)
        leased = dequeue(session, 4)
        holder.execute("begin")
        end(holder, open_verb, leased[1:3])
        assert end(session, verb, leased) == [DONE[verb], "busy", "busy", DONE[verb]]
        holder.execute("rollback")
        assert end(session, verb, leased[1:3]) == [DONE[verb]] * 2
        session.execute("delete from lease")
        session.execute("select count(*) from queue_check(true)")
        session.execute("select count(*) from message_cancel(array(select id from message))")


def test_a_lease_is_busy_until_the_transaction_that_ends_it_commits(connect: Connect) -> None:
    holder, session = connect(), connect()
    for verb in VERBS:
        create(session, "a")
        leased = dequeue(session)
        holder.execute("begin")
        complete(holder, leased)
        assert end(session, verb, leased) == ["busy"]
        holder.execute("commit")
        assert end(session, verb, leased) == ["lease_lost"]


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_acknowledgements_outside_read_committed_raise(connect: Connect, isolation: str) -> None:
    holder, session = connect(), connect()
    create(session, "a")
    leased = dequeue(session)
    for verb in VERBS:
        session.execute(f"begin isolation level {isolation}")
        session.execute("select 1")
        end(holder, "heartbeat", leased)
        with pytest.raises(psycopg.Error) as raised:
            end(session, verb, leased)
        assert raised.value.sqlstate == "LQ002"
        session.execute("rollback")


def test_dequeue_outside_read_committed_raises(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    session.execute("begin isolation level repeatable read")
    with pytest.raises(psycopg.Error) as raised:
        dequeue(session)
    assert raised.value.sqlstate == "LQ002"
    session.execute("rollback")


def test_completing_does_not_wait_without_a_lock_timeout(connect: Connect) -> None:
    """The session has no lock_timeout, and a heartbeat of the same worker is uncommitted."""
    worker, other = connect(), connect()
    worker.execute("set lock_timeout = 0")
    worker.execute("set statement_timeout = '20s'")
    create(worker, "a", 2)
    leased = dequeue(worker, 2)
    other.execute("begin")
    assert end(other, "heartbeat", leased[:1]) == ["extended"]
    assert end(worker, "complete", leased) == ["busy", "completed"]
    assert value(worker, "show lock_timeout") == "0"
    other.execute("commit")
    assert end(worker, "complete", leased[:1]) == ["completed"]
