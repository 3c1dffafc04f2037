"""Messages that commit late, below the mark, are served promptly, whatever hints the session has."""

import itertools
import time
from collections.abc import Iterator

import pytest

from tests.conftest import Connect
from tests.races.sessions import (
    Session,
    ask,
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

CHANNELS = [f"channel {n}" for n in range(20)]


@pytest.fixture
def held_snapshot(connect: Connect) -> Iterator[None]:
    """A snapshot that stays open, as of a dump or a forgotten psql."""
    session = connect()
    session.execute("begin isolation level repeatable read")
    value(session, "select count(*) from message")
    yield
    session.execute("rollback")


def churn(session: Session, messages: int) -> None:
    """Create and complete messages; an open snapshot keeps all of them as dead rows."""
    for _ in range(messages // 500):
        for channel in CHANNELS:
            create(session, channel, 25)
        while leased := dequeue(session, 500):
            complete(session, leased)


def assert_leased_soon(worker: Session, ids: list[int], *, within_s: float = 10) -> None:
    """Assert that a worker that dequeues without pauses gets all of these, although others keep arriving."""
    begun, calls, found = time.monotonic(), 0, set[int]()
    while not set(ids) <= found:
        assert time.monotonic() - begun < within_s, f"{len(ids) - len(found)} missing after {calls} calls"
        leased = dequeue(worker, 5)
        complete(worker, leased)
        found |= {one.id for one in leased} & set(ids)
        calls += 1


def test_late_commits_are_served_by_sessions_with_hints(connect: Connect) -> None:
    late, session, workers = connect(), connect(), [connect() for _ in range(3)]
    for round_number in range(5):
        late.execute("begin")
        ids = [one for channel in CHANNELS for one in create(late, channel, 2)]
        churn(session, 1000)
        for worker in workers:
            drain(worker)
        late.execute("commit")
        assert_leased_soon(workers[round_number % 3], ids)


def test_late_commits_are_served_while_a_snapshot_is_open(connect: Connect, held_snapshot: None) -> None:
    late, session, worker = connect(), connect(), connect()
    drain(worker)
    late.execute("begin")
    ids = [one for channel in CHANNELS[:10] for one in create(late, channel, 2)]
    churn(session, 20_000)
    ids += create(late, "urgent", at=-5)
    drain(worker)
    late.execute("commit")
    assert_leased_soon(worker, ids)
    for channel in CHANNELS:
        create(session, channel, at=0)
    assert len(work_until(worker, lambda worked: len(worked) == 20, limit=5)) == 20


def test_messages_of_a_rolled_back_dequeue_are_leased_soon(connect: Connect) -> None:
    holder, session, worker = connect(), connect(), connect()
    ids = [one for channel in CHANNELS for one in create(session, channel, 2)]
    drained = drain(session)
    assert len(drained) == len(ids)
    for _ in range(5):
        ids = [one for channel in CHANNELS[:10] for one in create(session, channel, 2)]
        holder.execute("begin")
        assert dequeue(holder, 20)
        for channel in CHANNELS[10:]:
            create(session, channel, 5)
        work_until(worker, lambda worked: len(worked) == 50, limit=5)
        holder.execute("rollback")
        assert_leased_soon(worker, ids)
        drain(worker)


def test_a_message_that_was_deferred_late_is_served_soon(connect: Connect) -> None:
    """It is deferred in an open transaction, so its time is long past when it becomes visible."""
    late, session, worker = connect(), connect(), connect()
    create(session, "channel 0", 3)
    leased = dequeue(late, 3)
    late.execute("begin")
    end(late, "defer", leased[:1])
    end(late, "give_back", leased[1:])
    churn(session, 2000)
    drain(worker)
    late.execute("commit")
    assert_leased_soon(worker, [one.id for one in leased])


def test_late_messages_are_released_in_order(connect: Connect) -> None:
    """Invariant 4: of the messages visible when a call begins, the first by (dequeue_at, id) is released."""
    late, session = connect(), connect()
    late.execute("begin")
    low = create(late, "a", 5)
    create(session, "a", 5)
    assert len(dequeue(session, 2)) == 2
    urgent = create(late, "a", 2, at=-1)
    late.execute("commit")
    first = [one.id for one in dequeue(session, 4)]
    assert first == urgent + low[:2]
    urgent = create(session, "a", 1, at=-7)
    assert [one.id for one in dequeue(session, 3)] == urgent + low[2:4]
    rest = [one.id for one in dequeue(session, 10)]
    assert rest[0] == low[4]
    assert rest == sorted(rest)
    assert len(rest) == 4


def test_messages_with_the_same_priority_keep_their_order(connect: Connect) -> None:
    session, late = connect(), connect()
    given: list[int] = []
    expected: list[int] = []
    for round_number in range(30):
        late.execute("begin")
        hidden = create(late, "a", 1, at=0)
        seen = create(session, "a", 2, at=0)
        create(session, "a", 1)
        given += [one.id for one in dequeue(session, 2)]
        expected += seen
        late.execute("commit")
        given += [one.id for one in dequeue(session, 1)]
        expected += hidden
        assert given == expected, round_number
    assert len(drain(session)) == 30


def test_a_session_with_hints_says_when_a_late_message_is_due(connect: Connect) -> None:
    late, session, other = connect(), connect(), connect()
    create(session, "a")
    drain(session)
    late.execute("begin")
    now = value(late, "select to_epoch(clock_timestamp())")
    create(late, "a", at=now + 2000)
    assert ask(session).outcome == "empty"
    late.execute("commit")
    assert ask(other).outcome == "empty"
    until = time.monotonic() + 20
    while not (answer := ask(session)).leased:
        assert time.monotonic() < until
        assert (answer.wait_ms or 0) <= 2000
        time.sleep((answer.wait_ms or 0) / 1000)


def test_a_late_commit_is_noticed_while_more_wakes_arrive_than_are_read(connect: Connect) -> None:
    """One worker leases one message per call, and forty new ones arrive between two calls."""
    late, session, worker = connect(), connect(), connect()
    channels = [f"channel {n}" for n in range(1000)]
    create_in(session, [*channels, "late"])
    drain(worker)
    late.execute("begin")
    create(late, "late")
    numbers = itertools.cycle(range(1000))

    def overload() -> None:
        for _ in range(40):
            session.execute("select message_create(%s, 'x')", [f"channel {next(numbers)}"])
        complete(worker, dequeue(worker))

    for _ in range(40):
        overload()
    late.execute("commit")
    calls = 0
    while value(
        session,
        "select exists (select from wake where channel_id = (select id from channel where name = 'late'))",
    ):
        overload()
        calls += 1
        assert calls < 300


def test_a_late_commit_is_first_at_the_next_full_scan(
    connect: Connect,
) -> None:
    """A session that uses its hints, for up to five seconds, does not see it earlier."""
    late, session, worker = connect(), connect(), connect()
    late.execute("begin")
    ids = create(late, "a")
    for _ in range(2):
        for _ in range(200):
            create(session, "a")
        assert len(dequeue(worker, 50)) == 50
    late.execute("commit")
    assert [one.id for one in dequeue(connect())] == ids
