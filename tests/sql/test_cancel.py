"""A22: take a message out of the queue."""

from typing import Any

import pytest

from lonnymq.model.acknowledge import ACTIONS, Action, Effect
from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def cancel_key(queue: Session, channel: str, key: str) -> tuple[int | None, str]:
    found: tuple[int | None, str] = queue.rows("select * from message_cancel_key(%s, %s)", channel, key)[0]
    return found


def test_a_waiting_message_is_cancelled(queue: Session) -> None:
    created = queue.fill("a", 3)
    assert queue.cancel(created[1]) == ["cancelled"]
    assert ids_of(queue.drain()) == [created[0], created[2]]


def test_a_scheduled_message_is_cancelled(queue: Session) -> None:
    created = queue.create("a", delay_ms=60_000)
    queue.dequeue_once()
    assert queue.cancel(created) == ["cancelled"]
    assert queue.ask("select count(*) from message") == 0


def test_a_message_can_be_cancelled_once(queue: Session) -> None:
    created = queue.create("a")
    assert queue.cancel(created, 999_999) == ["cancelled", "unknown"]
    assert queue.cancel(created) == ["unknown"]


def test_cancelling_no_messages_does_nothing(queue: Session) -> None:
    assert queue.cancel() == []


def test_a_message_is_cancelled_by_its_key(queue: Session) -> None:
    created = queue.create("a", key="k")
    queue.create("b", key="k")
    assert cancel_key(queue, "a", "other") == (None, "unknown")
    assert cancel_key(queue, "c", "k") == (None, "unknown")
    assert cancel_key(queue, "a", "k") == (created, "cancelled")
    assert cancel_key(queue, "a", "k") == (None, "unknown")
    assert [one.channel for one in queue.drain()] == ["b"]


def test_the_worker_of_a_cancelled_message_is_told(queue: Session) -> None:
    created = queue.create("a")
    leased = queue.lease()
    assert queue.cancel(created) == ["cancelled"]
    assert queue.heartbeat([leased]) == ["cancelled"]
    assert queue.heartbeat([leased]) == ["cancelled"]
    assert queue.complete([leased]) == ["cancelled"]
    assert queue.complete([leased]) == ["lease_lost"]
    assert queue.ask("select count(*) from lease") == 0


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_any_acknowledgement_ends_a_cancelled_messages_lease(queue: Session, action: Action[Any]) -> None:
    queue.fill("a", 2)
    taken = queue.take(2)
    queue.cancel(taken[0].message_id)
    assert queue.acknowledge(action, taken)[0] == "cancelled"
    assert queue.ask("select count(*) from lease") == 0
    assert queue.ask("select count(*) from dead") == (action.effect is Effect.BURY)


def test_an_expired_lease_of_a_cancelled_message_brings_nothing_back(queue: Session) -> None:
    created = queue.create("a", max_attempts=1)
    leased = queue.lease()
    queue.cancel(created)
    queue.expire([leased])
    assert queue.take(1) == []
    assert queue.ask("select count(*) from lease") == 0
    assert queue.ask("select count(*) from dead") == 0


def test_a_message_that_another_transaction_has_locked_is_busy(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    created = queue.fill("a", 2, keys=["k", None])
    other.cancel(created[0])
    assert queue.cancel(*created) == ["busy", "cancelled"]
    assert cancel_key(queue, "a", "k") == (created[0], "busy")
    other.connection.rollback()
    assert queue.cancel(created[0]) == ["cancelled"]


def test_a_message_can_be_leased_before_its_cancellation_commits(session: Open) -> None:
    """Rule 7: this leaves a lease without a message, which is a valid state."""
    queue, worker = session(autocommit=False), session()
    worker.run("set lock_timeout = '50ms'")
    created = worker.fill("a", 2)
    queue.cancel(created[0])
    taken = worker.take(2)
    queue.connection.commit()
    outcomes = dict(zip(ids_of(taken), worker.complete(taken), strict=True))
    assert outcomes.pop(created[0], "cancelled") == "cancelled"
    assert outcomes == {created[1]: "completed"}
    assert worker.ask("select count(*) from message") == 0
    worker.run("update lease set unlock_at = 0")
    assert worker.take(1) == []
    assert worker.ask("select count(*) from lease") == 0


def test_a_cancellation_that_is_rolled_back_loses_nothing(session: Open) -> None:
    queue, worker = session(autocommit=False), session()
    created = worker.fill("a", 3)
    queue.cancel(created[1])
    taken = worker.take(3)
    queue.connection.rollback()
    worker.complete(taken)
    worker.run("update lease set unlock_at = 0")
    worker.drain()
    assert worker.ask("select count(*) from message") == 0


def test_the_head_of_a_parked_channel_is_cancelled(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    created = queue.fill("a", 3)
    leased = queue.lease()
    queue.cancel(created[1])
    queue.complete([leased])
    assert ids_of(queue.take(5)) == [created[2]]


def test_a_whole_backlog_is_cancelled(queue: Session) -> None:
    created = queue.fill("a", 1_000)
    queue.take(10)
    assert set(queue.cancel(*created[10:])) == {"cancelled"}
    assert queue.take(1) == []
