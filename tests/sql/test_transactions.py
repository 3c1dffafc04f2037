"""A2, A4, A10: calls in transactions of the caller, several at once, without waiting."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def test_a_message_is_visible_if_and_only_if_its_transaction_commits(session: Open) -> None:
    producer, worker = session(autocommit=False), session()
    created = producer.create("a")
    assert worker.dequeue() == []
    producer.connection.commit()
    assert ids_of(worker.dequeue()) == [created]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_message_that_is_rolled_back_does_not_exist(session: Open, is_known: bool) -> None:
    producer, worker = session(autocommit=False), session()
    if is_known:
        worker.create("a")
        worker.drain()
    producer.create("a")
    producer.fill("a", 5)
    producer.connection.rollback()
    assert worker.dequeue() == []
    assert worker.ask("select count(*) from message") == 0


def test_a_rollback_to_a_savepoint_reverts_only_its_own_calls(queue: Session) -> None:
    with queue.connection.transaction():
        kept = queue.create("a")
        with queue.connection.transaction(force_rollback=True):
            queue.create("a")
            queue.create("b", key="k")
        also = queue.create("b", key="k")
    assert sorted(ids_of(queue.drain())) == [kept, also]


def test_a_failed_call_reverts_only_itself(queue: Session) -> None:
    with queue.connection.transaction():
        kept = queue.create("a")
        with pytest.raises(Exception, match="channel must be"), queue.connection.transaction():
            queue.create("")
    assert ids_of(queue.drain()) == [kept]


def test_a_worker_sees_its_own_uncommitted_messages(queue: Session) -> None:
    with queue.connection.transaction():
        created = queue.create("a")
        (leased,) = queue.dequeue()
        assert leased.message_id == created
        assert queue.complete([leased]) == ["completed"]
    assert queue.dequeue() == []


def test_a_completion_joins_the_callers_transaction(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    with queue.connection.transaction(force_rollback=True):
        assert queue.complete([leased]) == ["completed"]
        followed = queue.create("b")
    assert queue.complete([leased]) == ["completed"]
    assert followed not in ids_of(queue.drain())


def test_a_dequeue_that_is_rolled_back_changes_nothing(session: Open) -> None:
    queue, other = session(), session()
    created = queue.fill("a", 5)
    with queue.connection.transaction(force_rollback=True):
        assert ids_of(queue.dequeue(3)) == created[:3]
    assert ids_of(other.take(5)) == created
    assert other.ask("select count(*) from lease") == 5


def test_concurrent_dequeues_lease_different_messages_without_waiting(session: Open) -> None:
    first, second = session(autocommit=False), session()
    second.run("set lock_timeout = '50ms'")
    second.create_many([f"c{n}" for n in range(40)] * 3)
    mine = first.dequeue(2)
    others = second.take(8)
    assert len(mine) == 2
    assert len(others) == 8
    assert not {one.channel for one in mine} & {one.channel for one in others}
    first.connection.commit()
    rest = second.take(200)
    everything = ids_of(mine) + ids_of(others) + ids_of(rest)
    assert len(everything) == len(set(everything)) == 120


def test_a_dequeue_distinguishes_busy_from_empty(session: Open) -> None:
    first, second = session(autocommit=False), session()
    assert second.dequeue_once()[0].outcome == "empty"
    second.fill("a", 2)
    first.dequeue(1)
    (reply,) = second.dequeue_once()
    assert (reply.outcome, reply.wait_ms) == ("busy", 0)
    first.connection.commit()
    assert len(second.dequeue()) == 1


def test_an_empty_queue_says_when_to_ask_again(queue: Session) -> None:
    (reply,) = queue.dequeue_once()
    assert reply.outcome == "empty"
    assert reply.wait_ms == 60_000
    assert reply.message_id is None


def test_uncommitted_calls_block_no_other_calls(session: Open) -> None:
    """One call of each kind stays uncommitted; calls on the same channels continue."""
    queue = session()
    queue.set("capped", max_concurrency=10)
    for channel in ("a", "capped"):
        queue.fill(channel, 30)
    taken = queue.take(16)
    holders = [session(autocommit=False) for _ in range(7)]
    holders[0].create("a")
    holders[0].create("new")
    holders[1].complete(taken[0:2])
    holders[2].defer(taken[2:4], delay_ms=5)
    holders[3].bury(taken[4:6], "x")
    holders[4].heartbeat(taken[6:8])
    holders[5].give_back(taken[8:10])
    waiting = queue.ask(
        "select max(id) from message m where not exists (select from lease where message_id = m.id)"
    )
    assert holders[6].cancel(taken[10].message_id, waiting) == ["cancelled"] * 2

    queue.run("set lock_timeout = '50ms'")
    for channel in ("a", "capped", "new", "newer"):
        queue.create(channel)
    queue.create_many(["a", "new", "capped"])
    assert queue.complete(taken[11:13]) == ["completed"] * 2
    assert queue.defer(taken[13:14]) == ["deferred"]
    assert queue.heartbeat(taken[14:15]) == ["extended"]
    assert queue.bury(taken[15:16]) == ["buried"]
    for call in (queue.complete, queue.give_back, queue.heartbeat):
        assert call(taken[:1]) == ["busy"]
    assert queue.defer(taken[2:3]) == ["busy"]
    assert queue.bury(taken[4:5]) == ["busy"]
    assert queue.cancel(taken[0].message_id, waiting) == ["busy", "busy"]
    more = queue.take(40)
    assert {one.channel for one in more} == {"a", "capped", "new", "newer"}
    assert len({*ids_of(more)} & {*ids_of(taken[:11])}) == 0
    for holder in holders:
        holder.connection.commit()
    queue.run("update lease set unlock_at = 0")
    queue.drain()
    assert queue.ask("select count(*) from message") == 0


def test_two_open_transactions_create_one_new_channel(session: Open) -> None:
    """Rule 8: a channel id is derived from the name."""
    first, second, worker = session(autocommit=False), session(autocommit=False), session()
    second.run("set lock_timeout = '50ms'")
    created = [first.create("new"), second.create("new")]
    second.connection.commit()
    assert ids_of(worker.take(5)) == created[1:]
    first.connection.commit()
    assert ids_of(worker.take(5)) == created[:1]
    assert worker.ask("select count(*) from channel") == worker.ask("select count(*) from turn") == 1


def test_two_channels_in_opposite_order_do_not_deadlock(session: Open) -> None:
    first, second = session(autocommit=False), session(autocommit=False)
    for one in (first, second):
        one.run("set lock_timeout = '50ms'")
    first.create("a")
    second.create("b")
    first.create("b")
    second.create("a")
    first.connection.commit()
    second.connection.commit()
    assert len(session().drain()) == 4


def test_a_stalled_dequeue_frees_its_channels_after_its_lease(session: Open) -> None:
    """Rule 2: a caller that stalls in its own transaction is disconnected."""
    stalled, other = session(autocommit=False), session()
    other.create("a")
    stalled.dequeue(1, lease_ms=1)
    assert stalled.ask("show idle_in_transaction_session_timeout") == "1s"
    stalled.connection.rollback()
    assert stalled.ask("show idle_in_transaction_session_timeout") == "0"
    stalled.run("set idle_in_transaction_session_timeout = '5min'")
    stalled.dequeue(1, lease_ms=1)
    assert stalled.ask("show idle_in_transaction_session_timeout") == "5min"


@pytest.mark.parametrize(("is_durable", "expected"), [(True, "on"), (False, "off")])
def test_a_dequeue_that_is_not_durable_does_not_wait_for_the_disk(
    session: Open, is_durable: bool, expected: str
) -> None:
    queue = session(autocommit=False)
    queue.run("select message_dequeue(p_is_durable => %s)", is_durable)
    assert queue.ask("show synchronous_commit") == expected
    queue.connection.commit()
    assert queue.ask("show synchronous_commit") == "on"
