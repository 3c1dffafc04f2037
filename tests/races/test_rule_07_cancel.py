"""Rule 7: a cancel that races with a dequeue leaves at most a lease without a message, which is valid."""

import threading

import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import (
    Answer,
    Session,
    ask,
    check,
    complete,
    create,
    dequeue,
    drain,
    end,
    value,
    wait_for,
)

pytestmark = pytest.mark.race


def cancel(session: Session, ids: list[int]) -> list[str]:
    return [row[0] for row in session.execute("select outcome from message_cancel(%s)", [ids])]


def test_a_message_cancelled_while_leased_frees_the_cap_when_acknowledged(connect: Connect) -> None:
    session = connect()
    session.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    for action in ACTIONS:
        create(session, "a", 2)
        (leased,) = dequeue(session)
        assert cancel(session, [leased.id]) == ["cancelled"]
        assert end(session, "heartbeat", [leased]) == ["cancelled"]
        assert dequeue(session) == []
        assert end(session, action.name, [leased]) == ["cancelled"]
        assert end(session, action.name, [leased]) == ["lease_lost"]
        assert len(drain(session)) == 1


def test_the_expiry_of_a_cancelled_messages_lease_frees_the_cap(connect: Connect) -> None:
    session = connect()
    session.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    create(session, "a", 2)
    (leased,) = dequeue(session)
    cancel(session, [leased.id])
    session.execute("update lease set unlock_at = 0")
    assert len(dequeue(connect())) == 1
    assert end(session, "complete", [leased]) == ["lease_lost"]


def test_a_message_with_an_uncommitted_cancellation_hides_no_other(
    connect: Connect,
) -> None:
    canceller, worker = connect(), connect()
    ids = create(worker, "a", 3)
    canceller.execute("begin")
    assert cancel(canceller, ids[:1]) == ["cancelled"]
    leased = dequeue(worker, 3)
    assert [one.id for one in leased] == ids
    assert complete(worker, leased) == ["busy", "completed", "completed"]
    canceller.execute("commit")
    assert complete(worker, leased[:1]) == ["cancelled"]
    assert ask(worker).outcome == "empty"


def test_a_cancellation_that_is_rolled_back_loses_nothing(connect: Connect) -> None:
    canceller, worker = connect(), connect()
    ids = create(worker, "a", 3)
    canceller.execute("begin")
    cancel(canceller, ids)
    leased = dequeue(worker, 2)
    canceller.execute("rollback")
    complete(worker, leased)
    assert [one.id for one in leased] + [one.id for one in drain(worker)] == ids


@pytest.mark.parametrize("channels", [["a"], ["a", "b"]], ids=["one turn", "two turns"])
@pytest.mark.parametrize("cancelled", [1, 3])
def test_a_message_cancelled_between_choice_and_lease_leaves_no_trace(
    connect: Connect, channels: list[str], cancelled: int
) -> None:
    """A dequeue is stopped after it has read the messages; then the first ones are cancelled."""
    canceller, barrier, worker = connect(), connect(), connect()
    ids: list[int] = []
    for channel in channels:
        canceller.execute("select channel_set(%s, '{\"max_concurrency\": 2}')", [channel])
        create(canceller, channel)
        drain(worker)
    for channel in channels:
        ids += create(canceller, channel, 4)
    gone = [one for n in range(len(channels)) for one in ids[4 * n : 4 * n + cancelled]]
    with session_that_stops_at(connect, "message") as stopping:
        with StoppedDequeue(stopping, barrier) as stopped:
            assert cancel(canceller, gone) == ["cancelled"] * len(gone)
    assert check(canceller) == []
    # Those that were leased nevertheless are reported as cancelled.
    said = dict(zip([one.id for one in stopped.leased], complete(worker, stopped.leased), strict=True))
    assert {said[id_] for id_ in said if id_ in gone} <= {"cancelled"}
    worked = [id_ for id_ in said if id_ not in gone] + [one.id for one in drain(worker)]
    assert sorted(worked) == sorted(set(ids) - set(gone))
    assert check(canceller) == []
    assert value(canceller, "select count(*) from lease") == 0


class GatedDequeue(threading.Thread):
    """A dequeue that is stopped between choosing and leasing messages, for the duration of the block.

    Settling a turn deletes its wakes after it has chosen the messages; a trigger stops it there.
    """

    def __init__(self, connect: Connect, limit: int) -> None:
        super().__init__()
        self.session, self.gate, self.limit = connect(), connect(), limit
        self.answer = Answer("not asked", None, [])
        self.gate.execute(
            "create function gate() returns trigger language plpgsql"
            " as $$ begin perform pg_advisory_xact_lock_shared(4712); return null; end $$;"
            " create trigger gate before delete on wake for each statement execute function gate()"
        )

    def run(self) -> None:
        self.answer = ask(self.session, self.limit)

    def __enter__(self) -> "GatedDequeue":
        self.gate.execute("select pg_advisory_lock(4712)")
        self.start()
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4712 and not granted"
        wait_for(lambda: value(self.gate, waiting) == 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.execute("select pg_advisory_unlock(4712)")
        self.join()


HOUR_MS = 3_600_000
POLICIES = {
    "no limit": ("{}", 10),
    "cap of 1": ('{"max_concurrency": 1}', 1),
    "cap of 2": ('{"max_concurrency": 2}', 2),
    "rate": (f'{{"release_interval_ms": {HOUR_MS}}}', 1),
    "rate with a burst": (f'{{"release_interval_ms": {HOUR_MS}, "release_burst": 2}}', 2),
    "cap and rate": (f'{{"max_concurrency": 1, "release_interval_ms": {HOUR_MS}}}', 1),
}


@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("cancelled", [1, 2])
def test_a_cancelled_choice_spends_neither_cap_nor_rate_limit(
    connect: Connect, name: str, limit: int, cancelled: int
) -> None:
    """The next messages are leased in the same call, as far as the policy allows."""
    session = connect()
    policy, allowed = POLICIES[name]
    session.execute("select channel_set('a', %s)", [policy])
    ids = create(session, "a", 5)
    with GatedDequeue(connect, limit) as dequeue:
        assert cancel(session, ids[:cancelled]) == ["cancelled"] * cancelled
    left = ids[cancelled:]
    given = left[: min(limit, allowed)]
    assert [one.id for one in dequeue.answer.leased] == given
    assert check(session) == []
    # Other sessions get no more than the policy allows.
    more = [one.id for one in ask(connect(), 10).leased]
    assert more == left[len(given) : allowed]
    assert check(session) == []


@pytest.mark.parametrize("name", POLICIES)
def test_after_all_chosen_messages_are_cancelled_new_ones_are_released(connect: Connect, name: str) -> None:
    session = connect()
    session.execute("select channel_set('a', %s)", [POLICIES[name][0]])
    ids = create(session, "a", 2)
    with GatedDequeue(connect, 5) as dequeue:
        assert cancel(session, ids) == ["cancelled"] * 2
    assert dequeue.answer.outcome == "empty"
    assert check(session) == []
    (new,) = create(session, "a")
    assert [one.id for one in ask(connect(), 5).leased] == [new]


@pytest.mark.parametrize("cap", [None, 10_000])
def test_cancelling_at_full_speed_keeps_the_counts_right(connect: Connect, cap: int | None) -> None:
    session, canceller = connect(), connect()
    session.execute("select channel_set('a', jsonb_build_object('max_concurrency', %s::integer))", [cap])
    is_over = threading.Event()

    def cancel_what_waits() -> None:
        while not is_over.is_set():
            canceller.execute(
                "select count(*) from message_cancel(array(select id from message m"
                " where not exists (select from lease l where l.message_id = m.id) order by id limit 300))"
            )

    thread = threading.Thread(target=cancel_what_waits)
    thread.start()
    outcomes: set[str] = set()
    for _ in range(60):
        create(session, "a", 300)
        answer = ask(session, 300)
        outcomes.add(answer.outcome)
        if answer.leased:
            outcomes |= set(complete(session, answer.leased))
    is_over.set()
    thread.join()
    assert outcomes <= {"leased", "empty", "busy", "completed", "cancelled"}
    assert check(session) == []
    session.execute("update lease set unlock_at = 0")
    drain(session)
    assert value(session, "select count(*) from message") == value(session, "select count(*) from lease") == 0
