"""A queue's default policy: exact from its commit on, and told to channels that wait for an older one."""

import threading
import time

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import Session, ask, complete, create, dequeue, drain, value, work_until

pytestmark = pytest.mark.race

CHANNELS = [["a"], ["a", "b", "c"]]
IDS = ["one turn", "three turns"]


def set_default(session: Session, policy: str) -> None:
    value(session, "select queue_set(jsonb_build_object('default_policy', %s::jsonb))", policy)


def set_policy(session: Session, channel: str, policy: str) -> None:
    assert value(session, "select channel_set(%s, %s)", channel, policy) == "set"


def counts(session: Session) -> dict[str, int]:
    rows = session.execute(
        "select c.name, count(*) from lease l join channel c on c.id = l.channel_id group by 1"
    )
    return {str(name): int(count) for name, count in rows.fetchall()}


def work_all(session: Session, expected: int) -> None:
    """Lease messages, without ending them, until exactly `expected` are leased."""
    until = time.monotonic() + 10
    while (leased := value(session, "select count(*) from lease")) < expected and time.monotonic() < until:
        dequeue(session)
    assert leased == expected


@pytest.mark.parametrize("names", CHANNELS, ids=IDS)
def test_a_default_cap_holds_from_the_next_turn_of_every_channel(connect: Connect, names: list[str]) -> None:
    operator, worker = connect(), connect()
    for name in names:
        create(operator, name, 10)
    assert len(dequeue(worker, 2 * len(names))) == 2 * len(names)
    set_default(operator, '{"max_concurrency": 3}')
    assert len(dequeue(worker, 100)) == len(names)
    assert counts(operator) == dict.fromkeys(names, 3)


@pytest.mark.parametrize("names", CHANNELS, ids=IDS)
@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ('{"max_concurrency": 1}', '{"max_concurrency": 4}', 1),
        ('{"max_concurrency": 1}', '{"max_concurrency": null}', 1),
        ('{"max_concurrency": 1}', "null", 1),
        ('{"release_interval_ms": 3600000}', '{"release_interval_ms": null}', 1),
        ('{"release_interval_ms": 3600000}', '{"release_interval_ms": 1, "release_burst": 10}', 1),
        ('{"release_interval_ms": 3600000, "release_burst": 2}', '{"release_burst": 4}', 2),
    ],
)
def test_a_raised_default_reaches_channels_that_wait_for_the_old_one(
    connect: Connect, names: list[str], before: str, after: str, first: int
) -> None:
    """Nothing else would bring them back for an hour."""
    operator, worker = connect(), connect()
    set_default(operator, before)
    for name in names:
        create(operator, name, 4)
    work_all(worker, first * len(names))
    assert dequeue(worker, 100) == []
    set_default(operator, after)
    work_all(worker, 4 * len(names))


@pytest.mark.parametrize("names", CHANNELS, ids=IDS)
def test_a_channels_own_value_and_a_lifted_limit_win(connect: Connect, names: list[str]) -> None:
    operator, worker = connect(), connect()
    set_policy(operator, "own", '{"max_concurrency": 2}')
    set_policy(operator, "free", '{"max_concurrency": "none"}')
    set_default(operator, '{"max_concurrency": 1}')
    for name in ("own", "free", *names):
        create(operator, name, 4)
    assert len(dequeue(worker, 100)) == 2 + 4 + len(names)
    assert counts(operator) == {"own": 2, "free": 4, **dict.fromkeys(names, 1)}
    set_policy(operator, "free", '{"max_concurrency": null}')
    set_policy(operator, "own", '{"max_concurrency": null}')
    assert dequeue(worker, 100) == []


@pytest.mark.parametrize("names", CHANNELS, ids=IDS)
@pytest.mark.parametrize("stop", ["channel", "setting"])
def test_a_default_that_commits_during_a_dequeue_is_not_missed(
    connect: Connect, names: list[str], stop: str
) -> None:
    """A dequeue is stopped while it reads the old policy; then another one announces the new policy."""
    operator, barrier, worker = connect(), connect(), connect()
    set_default(operator, '{"max_concurrency": 1}')
    for name in names:
        create(operator, name, 3)
    work_all(worker, len(names))
    for name in names:
        create(operator, name)
    with session_that_stops_at(connect, stop) as stopping:
        with StoppedDequeue(stopping, barrier):
            set_default(operator, '{"max_concurrency": 4}')
            # Its full scan announces the change, while the stopped one holds the turns.
            for _ in range(3):
                ask(connect(), 1)
    work_all(worker, 4 * len(names))


def test_a_channel_that_a_dequeue_inserts_meanwhile_is_told_later(connect: Connect) -> None:
    """Nobody can see its turn until that commits: the second pass finds it."""
    operator, slow, worker = connect(), connect(), connect()
    set_default(operator, '{"max_concurrency": 1}')
    create(operator, "new", 3)
    slow.execute("begin")
    assert len(dequeue(slow, 10)) == 1
    set_default(operator, "null")
    for _ in range(3):
        dequeue(connect(), 10)
    assert value(operator, "select count(*) from policy_change where horizon is not null") == 1
    slow.execute("commit")
    work_all(worker, 3)
    work_until(worker, lambda _: value(operator, "select count(*) from policy_change") == 0)
    assert value(operator, "select count(*) from policy_change") == 0


@pytest.mark.parametrize("names", CHANNELS, ids=IDS)
def test_the_default_holds_for_a_channel_whose_row_is_being_inserted(
    connect: Connect, names: list[str]
) -> None:
    operator, other, worker = connect(), connect(), connect()
    set_default(operator, '{"max_concurrency": 1}')
    other.execute("begin")
    for name in names:
        set_policy(other, name, '{"weight": 2}')
        create(operator, name, 5)
    for _ in range(3):
        dequeue(worker, 100)
    assert all(
        count <= 1
        for (count,) in operator.execute("select count(*) from lease group by channel_id").fetchall()
    )
    other.execute("rollback")
    work_all(worker, len(names))
    assert dequeue(worker, 100) == []


def test_a_stopped_dequeue_delays_neither_the_default_nor_its_announcement(connect: Connect) -> None:
    operator, slow, worker = (
        connect(),
        connect(),
        connect(options="-c search_path=lonnymq -c lock_timeout=50ms"),
    )
    set_default(operator, '{"max_concurrency": 1}')
    create(operator, "a", 2)
    create(operator, "b", 2)
    work_all(worker, 2)
    set_default(operator, '{"max_concurrency": 2}')
    create(operator, "c")
    slow.execute("begin")
    dequeue(slow, 1)
    operator.execute("set lock_timeout = '50ms'")
    set_default(operator, '{"max_concurrency": 3}')
    dequeue(worker, 10)
    create(operator, "a")
    slow.execute("commit")
    work_all(worker, 6)


def test_default_caps_are_exact_while_they_change(connect: Connect) -> None:
    """After a lower cap has committed, no channel gets a message while it has as many leases."""
    operator, workers = connect(), [connect() for _ in range(3)]
    names = ["a", "b", "c"]
    for name in names:
        create(operator, name, 400)
    is_over = threading.Event()
    errors: list[str] = []

    def toggle() -> None:
        watcher = connect()
        while not is_over.is_set():
            set_default(operator, '{"max_concurrency": 50}')
            is_over.wait(0.003)
            set_default(operator, '{"max_concurrency": 2}')
            taken: dict[str, int] = {}
            leased = dequeue(watcher, 50)
            for one in leased:
                taken[one.channel] = taken.get(one.channel, 0) + 1
            errors.extend(f"{name}: {count} leases" for name, count in taken.items() if count > 2)
            complete(watcher, leased)

    def work(session: Session) -> None:
        while not is_over.is_set():
            complete(session, dequeue(session, 7))

    threads = [
        threading.Thread(target=toggle),
        *(threading.Thread(target=work, args=[one]) for one in workers),
    ]
    for thread in threads:
        thread.start()
    threads[0].join(timeout=3)
    is_over.set()
    for thread in threads:
        thread.join()
    assert not errors
    set_default(operator, "null")
    drain(workers[0])
    assert value(operator, "select count(*) from message") == 0
