"""A11 to A13: leases end, heartbeats extend them, and tokens fence them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lonnymq.model.acknowledge import ACTIONS, Action
from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of

Acknowledge = Callable[[Session, list[Reply]], list[str]]


def _acknowledge(action: Action[Any], queue: Session, leases: list[Reply]) -> list[str]:
    return queue.acknowledge(action, leases)


ACKNOWLEDGEMENTS: dict[str, Acknowledge] = {
    **{action.name: partial(_acknowledge, action) for action in ACTIONS},
    "heartbeat": lambda queue, leases: queue.heartbeat(leases),
}
acknowledgement = pytest.mark.parametrize("name", ACKNOWLEDGEMENTS)


def all_rows(queue: Session) -> list[object]:
    """Return all rows that an acknowledgement could change."""
    return [
        queue.rows(f"select t.* from {table} t order by 1, 2")
        for table in ("message", "lease", "dead", "wake", "turn", "history_overflow")
    ]


def test_a_leased_message_is_invisible_until_its_lease_ends(session: Open) -> None:
    queue, other = session(), session()
    created = queue.create("a")
    (leased,) = queue.dequeue(1, lease_ms=3_000, worker="w1")
    assert leased.unlock_at == leased.leased_at + 3_000_000
    assert other.dequeue_once()[0].outcome != "leased"
    other.wait_until_us(leased.unlock_at)
    (again,) = other.dequeue(1, worker="w2")
    assert (again.message_id, again.attempt) == (created, 2)
    assert again.leased_at >= leased.unlock_at
    assert again.token != leased.token


def test_an_expired_message_returns_to_its_place(session: Open) -> None:
    queue, other = session(), session()
    created = queue.fill("a", 6)
    taken = queue.take(4)
    queue.expire([taken[2], taken[1]])
    assert ids_of(other.take(10)) == [created[1], created[2], created[4], created[5]]


def test_all_of_many_expired_messages_return(queue: Session) -> None:
    created = queue.create_many([f"c{n % 3}" for n in range(700)])
    taken = queue.take(700)
    assert len(taken) == 700
    queue.expire(taken)
    assert sorted(ids_of(queue.take(700))) == sorted(message or 0 for _, message in created)


def test_slow_expiry_still_ends_all_leases_over_several_calls(queue: Session) -> None:
    created = queue.create_many([f"c{n % 3}" for n in range(500)])
    taken = queue.take(500)
    queue.run(
        "create function slow_down() returns trigger language plpgsql as"
        " $$ begin perform pg_sleep(0.001); return old; end $$"
    )
    queue.run("create trigger slow_down before delete on lease for each row execute function slow_down()")
    queue.expire(taken)
    assert sorted(ids_of(queue.take(500))) == sorted(message or 0 for _, message in created)


def test_a_dequeue_ends_expired_leases_without_a_background_job(queue: Session) -> None:
    queue.create("a")
    queue.dequeue(1, lease_ms=100)
    (reply,) = queue.dequeue()
    assert reply.attempt == 2


def test_the_longest_lease_is_a_day(queue: Session) -> None:
    queue.create("a")
    (leased,) = queue.dequeue(1, lease_ms=86_400_000)
    assert leased.unlock_at - leased.leased_at == 86_400_000_000


def test_a_heartbeat_extends_the_lease_from_now(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease(lease_ms=60_000)
    queue.heartbeat([leased], 500)
    sooner = queue.ask("select unlock_at from lease")
    assert sooner < leased.unlock_at
    assert queue.heartbeat([leased], 3_600_000) == ["extended"]
    assert queue.ask("select unlock_at from lease") > leased.unlock_at


def test_a_worker_that_sends_heartbeats_keeps_its_message(session: Open) -> None:
    queue, other = session(), session()
    queue.create("a")
    leased = queue.lease(lease_ms=150)
    queue.heartbeat([leased], 10_000)
    other.wait_until_us(leased.unlock_at + 1_000)
    assert other.dequeue() == []
    assert queue.complete([leased]) == ["completed"]


def test_a_late_heartbeat_extends_an_expired_lease_nobody_has_ended(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    queue.expire([leased])
    assert queue.heartbeat([leased]) == ["extended"]
    assert queue.dequeue() == []


@acknowledgement
def test_an_acknowledgement_of_a_lost_lease_changes_nothing(queue: Session, name: str) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    queue.create("a")
    lost = queue.lease()
    queue.expire([lost])
    current = queue.lease()
    before = all_rows(queue)
    assert ACKNOWLEDGEMENTS[name](queue, [lost]) == ["lease_lost"]
    assert all_rows(queue) == before
    assert queue.complete([current]) == ["completed"]


@acknowledgement
def test_the_token_not_the_attempt_number_is_the_fence(session: Open, name: str) -> None:
    """Rule 4: after a dequeue is rolled back, the same attempt is issued again with another token."""
    queue, other = session(), session()
    queue.create("a")
    with queue.connection.transaction(force_rollback=True):
        lost = queue.lease()
    current = other.lease()
    assert (lost.message_id, lost.attempt) == (current.message_id, current.attempt)
    assert ACKNOWLEDGEMENTS[name](queue, [lost]) == ["lease_lost"]
    assert other.complete([current]) == ["completed"]


@acknowledgement
def test_a_guessed_token_is_refused(queue: Session, name: str) -> None:
    queue.create("a")
    leased = queue.lease()
    for token in (0, 1, leased.token + 1, -leased.token):
        assert ACKNOWLEDGEMENTS[name](queue, [leased._replace(token=token)]) == ["lease_lost"]
    assert queue.complete([leased]) == ["completed"]


@acknowledgement
def test_acknowledging_an_unknown_message_is_lease_lost(queue: Session, name: str) -> None:
    queue.create("a")
    leased = queue.lease()
    unknown = leased._replace(message_id=987_654_321)
    assert ACKNOWLEDGEMENTS[name](queue, [unknown]) == ["lease_lost"]


@acknowledgement
def test_acknowledging_a_completed_message_is_lease_lost(queue: Session, name: str) -> None:
    queue.create("a")
    leased = queue.lease()
    queue.complete([leased])
    assert ACKNOWLEDGEMENTS[name](queue, [leased]) == ["lease_lost"]


@acknowledgement
def test_a_lease_that_another_transaction_has_locked_is_busy(session: Open, name: str) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    for holder in ACKNOWLEDGEMENTS.values():
        queue.create("a")
        leased = queue.lease()
        holder(other, [leased])
        assert ACKNOWLEDGEMENTS[name](queue, [leased]) == ["busy"]
        other.connection.rollback()
        assert ACKNOWLEDGEMENTS[name](queue, [leased]) not in (["busy"], ["lease_lost"])
        queue.run("delete from lease; delete from message; delete from wake; delete from turn")


@acknowledgement
def test_a_message_is_busy_until_its_cancellation_commits(session: Open, name: str) -> None:
    queue, other = session(), session(autocommit=False)
    queue.create("a")
    leased = queue.lease()
    other.cancel(leased.message_id)
    assert ACKNOWLEDGEMENTS[name](queue, [leased]) == ["busy"]
    other.connection.commit()
    assert ACKNOWLEDGEMENTS[name](queue, [leased]) == ["cancelled"]


def test_of_two_attempts_only_the_lease_holder_completes(session: Open) -> None:
    """Invariant 6: at most one of several attempts can complete a message."""
    first, second = session(), session()
    first.create("a")
    old = first.lease()
    first.expire([old])
    new = second.lease()
    assert (first.complete([old]), second.complete([new])) == (["lease_lost"], ["completed"])


def test_all_leases_of_a_call_have_different_tokens(queue: Session) -> None:
    queue.fill("a", 500)
    tokens = {one.token for one in queue.take(500)}
    assert len(tokens) == 500


def test_one_call_may_complete_leases_of_several_workers(session: Open) -> None:
    first, second = session(), session()
    first.fill("a", 4)
    taken = first.dequeue(2, worker="w1") + second.dequeue(2, worker="w2")
    assert first.rows("select worker, count(*) from lease group by 1 order by 1") == [("w1", 2), ("w2", 2)]
    assert first.complete(taken) == ["completed"] * 4


def test_the_dequeue_of_a_crashed_session_is_rolled_back(session: Open) -> None:
    queue, crashed = session(), session(autocommit=False)
    created = queue.create("a")
    crashed.dequeue()
    queue.run("select pg_terminate_backend(%s, 10000)", crashed.connection.info.backend_pid)
    assert ids_of(queue.dequeue()) == [created]
    crashed.connection.close()
