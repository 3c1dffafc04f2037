"""A16: many messages in one call, each with an outcome of its own."""

import psycopg
import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of
from tests.sql.test_leases import ACKNOWLEDGEMENTS, all_rows

SUCCESS = {**{action.name: action.done for action in ACTIONS}, "heartbeat": "extended"}


def mixed_leases(queue: Session, other: Session) -> list[Reply]:
    """Return six leases: a good one, a lost, a cancelled, a good, a busy and an unknown one."""
    queue.create_many(["a", "b", "c", "a", "b"])
    good, lost, cancelled, good_too, busy = sorted(queue.take(5), key=lambda one: one.message_id)
    lost = lost._replace(token=lost.token + 1)
    queue.cancel(cancelled.message_id)
    assert other.heartbeat([busy]) == ["extended"]
    return [good, lost, cancelled, good_too, busy, good._replace(message_id=10_000_000)]


@pytest.mark.parametrize("name", ACKNOWLEDGEMENTS)
def test_outcomes_come_in_the_order_given(session: Open, name: str) -> None:
    queue, other = session(), session(autocommit=False)
    given = mixed_leases(queue, other)
    expected = [SUCCESS[name], "lease_lost", "cancelled", SUCCESS[name], "busy", "lease_lost"]
    assert ACKNOWLEDGEMENTS[name](queue, given[::-1] if name == "defer" else given) == (
        expected[::-1] if name == "defer" else expected
    )
    other.connection.rollback()
    assert ACKNOWLEDGEMENTS[name](queue, given[4:5]) == [SUCCESS[name]]


@pytest.mark.parametrize("name", [one for one in ACKNOWLEDGEMENTS if one != "heartbeat"])
def test_a_repeated_id_is_refused_and_nothing_changed(queue: Session, name: str) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    queue.create_many(["a", "a", "b"], max_attempts=[None, 1, None])
    taken = queue.take(3)
    before = all_rows(queue)
    with pytest.raises(psycopg.Error) as raised:
        ACKNOWLEDGEMENTS[name](queue, [*taken, taken[1]])
    assert raised.value.sqlstate == "LQ001"
    assert "ids" in str(raised.value)
    assert all_rows(queue) == before
    assert ACKNOWLEDGEMENTS[name](queue, taken)


def test_a_heartbeat_accepts_a_repeated_id(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    assert queue.heartbeat([leased, leased]) == ["extended", "extended"]


@pytest.mark.parametrize("name", ACKNOWLEDGEMENTS)
def test_acknowledging_no_messages_does_nothing(queue: Session, name: str) -> None:
    assert ACKNOWLEDGEMENTS[name](queue, []) == []


@pytest.mark.parametrize("name", ACKNOWLEDGEMENTS)
def test_one_call_acknowledges_messages_of_many_channels(queue: Session, name: str) -> None:
    queue.create_many([f"c{n % 50}" for n in range(400)])
    taken = queue.take(400)
    assert ACKNOWLEDGEMENTS[name](queue, taken) == [SUCCESS[name]] * 400


def test_create_many_keeps_the_order_and_the_options_of_each_message(queue: Session) -> None:
    created = queue.create_many(
        ["a", "b", "a", "a"],
        [b"1", b"2", b"3", b""],
        dequeue_ats=[None, 5, None, -1],
        delays_ms=[3_600_000, None, None, None],
        keys=["k", "k", None, None],
        max_attempts=[1, 2, None, 3],
    )
    assert [outcome for outcome, _ in created] == ["created"] * 4
    ids = [message for _, message in created]
    assert ids == sorted(ids, key=lambda one: one or 0)
    found = queue.rows(
        "select id, content, key, max_attempts, case when dequeue_at < 100 then dequeue_at end,"
        " dequeue_at > created_at + 1000000 from message order by id"
    )
    assert found == [
        (ids[0], b"1", "k", 1, None, True),
        (ids[1], b"2", "k", 2, 5, False),
        (ids[2], b"3", None, None, None, False),
        (ids[3], b"", None, 3, -1, False),
    ]


def test_create_many_accepts_no_messages(queue: Session) -> None:
    assert queue.create_many([]) == []


def test_create_many_refuses_more_than_100_000_messages(queue: Session) -> None:
    with pytest.raises(psycopg.Error) as raised:
        queue.run(
            "select message_create_many("
            " array_fill('a'::text, array[100001]), array_fill('x'::bytea, array[100001]))"
        )
    assert raised.value.sqlstate == "LQ001"
    assert "100000" in str(raised.value)


def test_create_many_writes_one_wake_per_channel(queue: Session) -> None:
    queue.create_many(["a", "b"] * 500)
    assert queue.ask("select count(*) from wake") == 2


def test_no_message_is_leased_twice(queue: Session) -> None:
    queue.create_many([f"c{n % 7}" for n in range(1_000)])
    found = ids_of(queue.take(1_000))
    assert len(found) == len(set(found)) == 1_000
