"""A20: the life of a channel."""

from typing import Any

import psycopg
import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def delete(queue: Session, channel: str = "a") -> str:
    outcome: str = queue.ask("select channel_delete(%s)", channel)
    return outcome


def policy(queue: Session, channel: str = "a") -> tuple[object, ...]:
    found: tuple[object, ...] = queue.rows(
        "select max_concurrency, release_interval_ms, release_burst, weight, max_size, max_attempts,"
        " is_paused from channel_status where channel = %s",
        channel,
    )[0]
    return found


DEFAULTS = (None, None, 1, 1, None, None, False)


def test_a_channel_is_created_on_first_use(queue: Session) -> None:
    queue.create("a")
    queue.dequeue_once()
    assert policy(queue) == DEFAULTS


def test_a_policy_set_before_first_use_holds(queue: Session) -> None:
    queue.set("a", max_concurrency=1, weight=3)
    assert policy(queue) == (1, None, 1, 3, None, None, False)
    queue.fill("a", 3)
    assert len(queue.take(3)) == 1


def test_channel_set_changes_only_given_fields_and_null_is_the_default(queue: Session) -> None:
    everything = {
        "max_concurrency": 2,
        "release_interval_ms": 3,
        "release_burst": 4,
        "weight": 5,
        "max_size": 6,
        "max_attempts": 7,
        "is_paused": True,
    }
    queue.set("a", **everything)
    assert policy(queue) == (2, 3, 4, 5, 6, 7, True)
    queue.set("a", weight=9)
    assert policy(queue) == (2, 3, 4, 9, 6, 7, True)
    queue.set("a")
    assert policy(queue) == (2, 3, 4, 9, 6, 7, True)
    queue.set("a", **dict.fromkeys(everything))
    assert policy(queue) == DEFAULTS


def test_a_paused_channel_releases_nothing_until_it_is_resumed(queue: Session) -> None:
    created = queue.fill("a", 4)
    taken = queue.take(1)
    assert queue.ask("select channel_pause('a')") == "set"
    queue.fill("b", 1)
    assert [one.channel for one in queue.take(5)] == ["b"]
    assert queue.complete(taken) == ["completed"]
    queue.create("a", dequeue_at=-1)
    assert queue.take(5) == []
    assert queue.ask("select channel_resume('a')") == "set"
    assert sorted(ids_of(queue.take(5)))[:3] == created[1:]


def test_a_channel_can_be_paused_before_it_is_used(queue: Session) -> None:
    queue.run("select channel_pause('a')")
    queue.create("a")
    assert queue.take(1) == []
    queue.run("select channel_resume('a')")
    assert len(queue.take(1)) == 1


def test_a_scheduled_message_waits_out_a_pause(queue: Session) -> None:
    queue.create("a", delay_ms=50)
    queue.run("select channel_pause('a')")
    queue.run("select pg_sleep(0.06)")
    assert queue.take(1) == []
    queue.run("select channel_resume('a')")
    assert len(queue.take(1)) == 1


def test_expired_leases_of_a_paused_channel_wait_too(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    queue.run("select channel_pause('a')")
    queue.expire([leased])
    assert queue.take(1) == []
    queue.run("select channel_resume('a')")
    assert queue.lease().attempt == 2


def test_a_change_takes_effect_on_the_next_dequeue_of_any_session(session: Open) -> None:
    queue, worker = session(), session()
    queue.fill("a", 10)
    assert len(worker.take(2)) == 2
    queue.set("a", max_concurrency=2)
    assert worker.dequeue_once()[0].outcome != "leased"
    queue.set("a", max_concurrency=3)
    assert len(worker.take(5)) == 1


def test_setting_a_channel_that_another_transaction_sets_is_busy(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    other.set("a", weight=2)
    assert queue.ask("select channel_set('a', '{\"weight\": 3}')") == "busy"
    other.connection.commit()
    other.set("a", weight=4)
    assert queue.ask("select channel_set('a', '{\"weight\": 3}')") == "busy"
    other.connection.rollback()
    queue.set("a", weight=3)
    assert policy(queue)[3] == 3


def test_an_uncommitted_policy_does_not_block_creates_and_dequeues(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    queue.fill("a", 3)
    queue.take(1)
    other.set("a", weight=2)
    queue.create("a")
    assert len(queue.take(3)) == 3


def test_an_unknown_channel_cannot_be_deleted(queue: Session) -> None:
    assert delete(queue) == "unknown"


def test_a_channel_that_no_worker_has_seen_yet_is_not_empty(queue: Session) -> None:
    queue.create("a")
    assert delete(queue) == "not_empty"


def test_an_empty_channel_is_deleted_with_its_policy(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    queue.fill("a", 3)
    queue.drain()
    assert delete(queue) == "deleted"
    assert delete(queue) == "unknown"
    for table in ("channel", "turn", "wake"):
        assert queue.ask(f"select count(*) from {table}") == 0


def test_a_channel_that_has_only_a_policy_is_deleted(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    assert delete(queue) == "deleted"


@pytest.mark.parametrize("options", [{}, {"delay_ms": 60_000}], ids=["waiting", "scheduled"])
def test_a_channel_with_a_message_is_not_deleted(queue: Session, options: dict[str, Any]) -> None:
    queue.set("a", weight=2)
    queue.create("a", **options)
    assert delete(queue) == "not_empty"
    queue.dequeue_once()
    assert delete(queue) == "not_empty"


@pytest.mark.parametrize("cap", [None, 5])
def test_a_channel_with_a_lease_is_not_deleted(queue: Session, cap: int | None) -> None:
    queue.set("a", max_concurrency=cap)
    queue.create("a")
    leased = queue.lease()
    assert delete(queue) == "not_empty"
    queue.cancel(leased.message_id)
    assert delete(queue) == "not_empty"
    assert queue.complete([leased]) == ["cancelled"]
    assert delete(queue) == "deleted"


def test_a_deleted_channel_can_be_used_again(queue: Session) -> None:
    queue.set("a", max_concurrency=1)
    queue.fill("a", 5)
    queue.drain()
    delete(queue)
    created = queue.fill("a", 3)
    assert ids_of(queue.take(3)) == created
    assert policy(queue) == DEFAULTS


def test_a_recreated_channel_releases_messages_with_earlier_times(queue: Session) -> None:
    """Its mark was deleted with it."""
    queue.create("a", dequeue_at=1_000)
    queue.drain()
    delete(queue)
    created = queue.create("a", dequeue_at=5)
    assert ids_of(queue.take(1)) == [created]


def test_dead_letters_outlive_their_channel(queue: Session) -> None:
    queue.create("a")
    queue.bury([queue.lease()])
    assert delete(queue) == "deleted"
    assert queue.ask("select channel from dead_list()") == "a"


@pytest.mark.parametrize("is_known", [False, True])
def test_a_message_created_during_a_delete_recreates_the_channel(session: Open, is_known: bool) -> None:
    queue, producer = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    queue.set("a", weight=2)
    if is_known:
        queue.create("a")
        queue.drain()
    created = [producer.create("a"), *producer.fill("a", 2)]
    assert delete(queue) == "deleted"
    assert queue.take(1) == []
    producer.connection.commit()
    drained = queue.drain()
    assert [(one.channel, one.message_id) for one in drained] == [("a", one) for one in created]


def test_a_message_created_before_the_delete_commits_is_not_lost(session: Open) -> None:
    queue, deleter = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    queue.create("a")
    queue.drain()
    assert delete(deleter) == "deleted"
    created = queue.create("a")
    queue.dequeue_once()
    deleter.connection.commit()
    assert ids_of(queue.take(1)) == [created]


def test_deleting_a_channel_whose_turn_is_locked_is_busy(session: Open) -> None:
    queue, worker = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    queue.fill("a", 2)
    queue.drain()
    queue.create("b")
    worker.dequeue(1)
    worker.run("select from turn for update")
    assert delete(queue) == "busy"
    worker.connection.rollback()
    assert delete(queue) == "deleted"
    queue.drain()


def test_the_second_of_two_concurrent_deletes_is_busy(session: Open) -> None:
    first, second = session(autocommit=False), session()
    second.set("a", weight=2)
    assert delete(first) == "deleted"
    assert delete(second) == "busy"
    first.connection.commit()
    assert delete(second) == "unknown"


def test_a_channel_with_uncommitted_completions_is_not_deleted(session: Open) -> None:
    queue, worker = session(), session(autocommit=False)
    queue.create("a")
    leased = queue.lease()
    worker.complete([leased])
    assert delete(queue) == "not_empty"
    worker.connection.commit()
    assert delete(queue) == "deleted"


@pytest.mark.broken_on_purpose
def test_two_channels_with_the_same_id_keep_their_own_names(queue: Session) -> None:
    """Rule 8: a collision never makes a dequeue fail; only channel_set reports it."""
    queue.create("a", b"of a")
    queue.drain()
    queue.run("update channel set name = 'b'")  # as if a and b had the same hash
    created = queue.create("a", b"of a")
    (leased,) = queue.take(1)
    assert (leased.message_id, leased.channel, leased.content) == (created, "a", b"of a")
    with pytest.raises(psycopg.Error) as raised:
        queue.run("select channel_set('a', '{\"weight\": 2}')")
    assert raised.value.sqlstate == "LQ004"


NAMES = [
    "a",
    " ",
    "A" * 255,
    "ü" * 255,
    "😀" * 255,
    "a/b.c:d",
    "'; drop table message; --",
    '"quoted"',
    "a b",
    "null",
    "%s",
]


def test_any_printable_name_is_a_valid_channel_name(queue: Session) -> None:
    for name in NAMES:
        queue.set(name, weight=2)
        queue.create(name)
        assert queue.lease().channel == name
        assert queue.ask("select reason from channel_explain(%s)", name) == "empty"
