"""Rule 8: the first use of a channel makes nobody wait, and makes one turn."""

import threading

import pytest

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, complete, create, dequeue, drain, value

pytestmark = pytest.mark.race


def test_two_open_transactions_use_the_same_new_channel(connect: Connect) -> None:
    first, second, worker = connect(), connect(), connect()
    for session in (first, second):
        session.execute("set lock_timeout = '50ms'")
        session.execute("begin")
    create(first, "new")
    create(second, "new")
    create(first, "new")
    second.execute("commit")
    assert len(dequeue(worker, 10)) == 1
    first.execute("commit")
    assert len(dequeue(worker, 10)) == 2
    assert value(worker, "select count(*) from turn") == 1


def test_two_open_transactions_that_use_new_channels_in_opposite_order(connect: Connect) -> None:
    first, second, worker = connect(), connect(), connect()
    for session in (first, second):
        session.execute("set lock_timeout = '50ms'")
        session.execute("begin")
    create(first, "a")
    create(second, "b")
    create(first, "b")
    create(second, "a")
    first.execute("commit")
    second.execute("commit")
    assert len(drain(worker)) == 4


@pytest.mark.parametrize("is_explicit", [False, True])
def test_twenty_sessions_at_once_make_one_turn_each(connect: Connect, is_explicit: bool) -> None:
    sessions = [connect() for _ in range(20)]
    barrier = threading.Barrier(20, timeout=20)
    leased: list[Leased] = []

    def use(session: Session, number: int) -> None:
        for n in range(15):
            barrier.wait()
            if is_explicit and number % 4 == 0:
                session.execute("select channel_set(%s, '{}')", [f"new {n}"])
            elif number % 2:
                create(session, f"new {n}")
            leased.extend(dequeue(session))

    threads = [threading.Thread(target=use, args=[session, n]) for n, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rest = drain(sessions[0])
    assert len({one.id for one in leased + rest}) == len(leased) + len(rest) == 150
    assert value(sessions[0], "select count(*) from turn") == 15
    assert value(sessions[0], "select count(*) from channel") == 15


def test_a_dequeue_that_made_the_turn_and_was_rolled_back_hides_nothing(connect: Connect) -> None:
    first, second = connect(), connect()
    create(first, "new", 2)
    first.execute("begin")
    assert len(dequeue(first)) == 1
    assert dequeue(second) == []
    first.execute("rollback")
    assert len(drain(second)) == 2


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_an_open_policy_change_of_a_new_channel_does_not_hide_its_messages(
    connect: Connect, ending: str
) -> None:
    operator, worker = connect(), connect()
    operator.execute("begin")
    operator.execute("""select channel_set('new', '{"max_concurrency": 1}')""")
    create(worker, "new", 3)
    (leased,) = dequeue(worker)
    operator.execute(ending)
    assert leased.channel == "new"
    assert len(dequeue(worker, 3)) == (0 if ending == "commit" else 2)
    complete(worker, [leased])
    worker.execute("update lease set unlock_at = 0")
    drain(worker)
    assert value(worker, "select channel_delete('new')") == "deleted"


@pytest.mark.broken_on_purpose
def test_two_names_with_the_same_id_are_both_served_under_their_names(connect: Connect) -> None:
    session = connect()
    session.execute(
        "create or replace function channel_id(p_salt bytea, p_channel text) returns bigint"
        " language sql immutable as 'select 42::bigint'"
    )
    create(session, "a", 2)
    create(session, "b", 2)
    assert sorted(one.channel for one in drain(session)) == ["a", "a", "b", "b"]
