"""Rule 10: wakes announce policy changes, which take effect on the next dequeue; caps remain exact."""

import threading
import time

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import Session, ask, complete, create, dequeue, drain, value, work_until

pytestmark = pytest.mark.race


def set_policy(session: Session, policy: str, channel: str = "a") -> None:
    assert value(session, "select channel_set(%s, %s)", channel, policy) == "set"


def test_a_policy_takes_effect_on_the_next_dequeue_of_every_session(
    connect: Connect,
) -> None:
    operator, worker = connect(), connect()
    create(operator, "a", 20)
    assert len(dequeue(worker, 2)) == 2
    set_policy(operator, '{"max_concurrency": 3}')
    assert len(dequeue(worker, 10)) == 1
    set_policy(operator, '{"max_concurrency": null, "is_paused": true}')
    assert dequeue(worker, 10) == []
    set_policy(operator, '{"is_paused": false, "release_interval_ms": 3600000}')
    assert len(dequeue(worker, 10)) == 1
    assert dequeue(worker, 10) == []
    set_policy(operator, '{"release_interval_ms": null}')
    assert len(dequeue(worker, 20)) == 16


def test_a_policy_that_is_rolled_back_changes_nothing(connect: Connect) -> None:
    operator, worker = connect(), connect()
    set_policy(operator, "{}")
    create(operator, "a", 3)
    operator.execute("begin")
    set_policy(operator, '{"is_paused": true}')
    assert len(dequeue(worker)) == 1
    operator.execute("rollback")
    assert len(dequeue(worker, 5)) == 2


def test_a_briefly_removed_cap_still_counts_an_open_completion(connect: Connect) -> None:
    operator, completer, worker = connect(), connect(), connect()
    set_policy(operator, '{"max_concurrency": 1}')
    create(operator, "a", 2)
    leased = dequeue(worker)
    set_policy(operator, '{"max_concurrency": null}')
    completer.execute("begin")
    complete(completer, leased)
    set_policy(operator, '{"max_concurrency": 1}')
    assert dequeue(worker) == []
    completer.execute("commit")
    assert_served(worker)


def test_an_old_open_completion_frees_the_cap_when_it_commits(
    connect: Connect,
) -> None:
    operator, completer, worker = connect(), connect(), connect()
    create(operator, "a")
    leased = dequeue(worker)
    completer.execute("begin")
    complete(completer, leased)
    for _ in range(100):
        create(operator, "b")
    drain(worker)
    create(operator, "a")
    set_policy(operator, '{"max_concurrency": 1}')
    assert dequeue(worker) == []
    completer.execute("commit")
    assert_served(worker)


@pytest.mark.parametrize("channels", [["a"], ["a", "b"]], ids=["one turn", "two turns"])
@pytest.mark.parametrize(
    ("before", "after"),
    [('{"is_paused": true}', '{"is_paused": false}'), ('{"max_concurrency": 1}', '{"max_concurrency": 9}')],
    ids=["resume", "raise"],
)
def test_a_policy_that_commits_during_a_dequeue_is_not_missed(
    connect: Connect, channels: list[str], before: str, after: str
) -> None:
    """A dequeue is stopped after it has read the old policy; then the new policy and its wake commit."""
    operator, barrier, worker = connect(), connect(), connect()
    for channel in channels:
        set_policy(operator, before, channel)
        create(operator, channel, 3)
    first = len(dequeue(worker, 10))
    assert dequeue(worker, 10) == []
    for channel in channels:
        create(operator, channel)
    with session_that_stops_at(connect, "channel") as stopping:
        with StoppedDequeue(stopping, barrier) as stopped:
            for channel in channels:
                set_policy(operator, after, channel)
    count = 4 * len(channels) - first - len(stopped.leased)
    worked = work_until(worker, lambda worked: len(worked) == count)
    assert len(worked) == count


def test_caps_are_exact_while_they_are_set_and_removed(connect: Connect) -> None:
    """Leases from before the cap count as soon as dequeue sees the cap."""
    operator, completer, worker, watcher = connect(), connect(), connect(), connect()
    # The channel exists before a dequeue could create it, which would make it busy.
    set_policy(operator, "{}")
    create(operator, "a", 2000)
    is_over = threading.Event()
    errors: list[str] = []

    def toggle() -> None:
        while not is_over.is_set():
            set_policy(operator, '{"max_concurrency": null}')
            time.sleep(0.003)
            set_policy(operator, '{"max_concurrency": 2}')
            time.sleep(0.003)
            leased = dequeue(watcher, 50)
            count = value(watcher, "select count(*) from lease")
            if leased and count > 2:
                errors.append(f"{count} leases, {len(leased)} of them taken under a cap of 2")
            complete(watcher, leased)

    thread = threading.Thread(target=toggle)
    thread.start()
    worked = 0
    until = time.monotonic() + 20
    while worked < 1200 and time.monotonic() < until:
        answer = ask(worker, 3)
        if answer.leased:
            completer.execute("begin")
            complete(completer, answer.leased)
            time.sleep(0.001)
            completer.execute("commit")
            worked += len(answer.leased)
    is_over.set()
    thread.join()
    assert not errors
    drain(worker)
    assert value(watcher, "select count(*) from message") == 0


def assert_served(worker: Session, *, within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if dequeue(worker):
            return
    raise AssertionError(f"no message was leased within {within_s} s")


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]], ids=["one turn", "three turns"])
@pytest.mark.parametrize(
    "policy", ['{"release_interval_ms": null}', '{"release_interval_ms": 1, "release_burst": 10}']
)
def test_a_higher_rate_takes_effect_at_once_for_all_channels(
    connect: Connect, names: list[str], policy: str
) -> None:
    """Before, their turns were due in an hour."""
    session = connect()
    for name in names:
        session.execute("""select channel_set(%s, '{"release_interval_ms": 3600000}')""", [name])
        create(session, name, 4)
    assert len(dequeue(session, 100)) == len(names)
    time.sleep(0.02)
    for name in names:
        session.execute("select channel_set(%s, %s)", [name, policy])
    assert len(dequeue(session, 100)) == 3 * len(names)


NAMES = [["a"], ["a", "b", "c"]]


@pytest.mark.parametrize("names", NAMES, ids=["one turn", "three turns"])
def test_a_cap_that_is_set_after_the_leases_counts_them_until_they_end(
    connect: Connect, names: list[str]
) -> None:
    """The end of a lease that was taken without a cap is not reported."""
    session = connect()
    for name in names:
        create(session, name, 5)
    leased = dequeue(session, 2 * len(names))
    for name in names:
        set_policy(session, '{"max_concurrency": 2}', name)
    for _ in range(3):
        assert dequeue(session, 100) == []
    complete(session, leased)
    taken: list[str] = []
    until = time.monotonic() + 10
    while len(taken) < 2 * len(names):
        assert time.monotonic() < until
        taken += [one.channel for one in dequeue(session, 100)]
    assert sorted(taken) == sorted(names * 2)
    assert dequeue(session, 100) == []
