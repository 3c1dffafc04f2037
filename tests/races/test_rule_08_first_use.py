"""Rule 8: the first use of a channel blocks no other call and creates one turn."""

import threading

import pytest

from tests.conftest import Connect
from tests.races.creation_lock import stop_at_creation_lock
from tests.races.sessions import (
    Leased,
    Session,
    check,
    complete,
    create,
    create_in,
    dequeue,
    drain,
    value,
)

pytestmark = pytest.mark.race


def test_two_open_transactions_can_use_the_same_new_channel(connect: Connect) -> None:
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


def test_new_channels_in_opposite_order_do_not_deadlock(connect: Connect) -> None:
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
def test_twenty_concurrent_sessions_create_one_turn_per_channel(connect: Connect, is_explicit: bool) -> None:
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


def test_a_rolled_back_dequeue_that_created_the_turn_hides_nothing(connect: Connect) -> None:
    first, second = connect(), connect()
    create(first, "new", 2)
    first.execute("begin")
    assert len(dequeue(first)) == 1
    assert dequeue(second) == []
    first.execute("rollback")
    assert len(drain(second)) == 2


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_an_uncommitted_policy_of_a_new_channel_hides_no_messages(connect: Connect, ending: str) -> None:
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
def test_two_channels_with_the_same_id_are_served_under_their_names(connect: Connect) -> None:
    session = connect()
    session.execute(
        "create or replace function channel_id(p_salt bytea, p_channel text) returns bigint"
        " language sql immutable as 'select 42::bigint'"
    )
    create(session, "a", 2)
    create(session, "b", 2)
    assert sorted(one.channel for one in drain(session)) == ["a", "a", "b", "b"]


def test_many_new_channels_do_not_fill_the_servers_lock_table(connect: Connect) -> None:
    """It has room for 64 locks per connection. When it is full, all calls fail: "out of shared memory"."""
    session = connect()
    create_in(session, [f"c{n}" for n in range(500)])
    session.execute("begin")
    leased = dequeue(session, 500)
    held = value(session, "select count(*) from pg_locks where pid = pg_backend_pid()")
    session.execute("commit")
    assert len(leased) >= 100
    assert held <= 64
    assert len(leased) + len(drain(session, 500)) == 500


def test_channel_set_does_not_wait_for_a_channel_created_meanwhile(connect: Connect) -> None:
    """channel_set finds no row and is stopped. A dequeue inserts it, and another channel_set changes it."""
    first, second, barrier = connect(), connect(), connect()
    create(second, "a")
    said: list[str] = []

    def change() -> None:
        said.append(value(first, """select channel_set('a', '{"weight": 2}')"""))

    with stop_at_creation_lock(barrier, first, change):
        assert len(dequeue(second)) == 1
        second.execute("begin")
        assert value(second, """select channel_set('a', '{"weight": 3}')""") == "set"
    second.execute("commit")
    assert said == ["busy"]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_uncommitted_policies_of_new_channels_do_not_lose_their_names(connect: Connect, ends: str) -> None:
    """Their turns are settled together while another transaction holds the creation locks."""
    operator, producer, worker = connect(), connect(), connect()
    names = [f"channel {n}" for n in range(5)]
    operator.execute("begin")
    for name in names:
        assert value(operator, "select channel_set(%s)", name) == "set"
    create_in(producer, names * 3)
    for _ in range(2):
        assert {one.channel for one in dequeue(worker, 5)} == set(names)
        assert check(producer) == []
    operator.execute(ends)
    session = connect()
    assert sorted(one.channel for one in dequeue(session, 10)) == names
    assert check(session) == []
    assert [row[0] for row in session.execute("select name from channel order by name")] == names
