"""A18: a key is unique among its channel's live messages."""

import threading

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def test_a_second_message_with_the_same_key_is_a_duplicate(queue: Session) -> None:
    created = queue.create("a", b"first", key="k")
    assert queue.try_create("a", b"second", key="k") == ("duplicate", created)
    drained = queue.drain()
    assert [(one.content, one.key) for one in drained] == [(b"first", "k")]


def test_a_leased_message_keeps_its_key(queue: Session) -> None:
    created = queue.create("a", key="k")
    queue.lease()
    assert queue.try_create("a", key="k") == ("duplicate", created)


@pytest.mark.parametrize("ending", ["complete", "bury", "cancel"])
def test_a_key_can_be_used_again_after_its_message_has_ended(queue: Session, ending: str) -> None:
    created = queue.create("a", key="k")
    leased = queue.lease()
    if ending == "cancel":
        queue.cancel(created)
    else:
        queue.end(f"message_{ending}", [leased])
    again = queue.create("a", key="k")
    assert again != created


@pytest.mark.parametrize("ending", ["defer", "give_back", "expire"])
def test_a_message_that_is_tried_again_keeps_its_key(queue: Session, ending: str) -> None:
    created = queue.create("a", key="k")
    leased = queue.lease()
    getattr(queue, ending)([leased])
    assert queue.try_create("a", key="k") == ("duplicate", created)
    assert queue.lease().key == "k"


def test_channels_do_not_share_keys(queue: Session) -> None:
    assert queue.create("a", key="k") != queue.create("b", key="k")


def test_keys_are_compared_exactly(queue: Session) -> None:
    for key in ("k", "K", "k ", " k", "\uff4b", "é", "e\u0301", "a\nb", "x" * 255):
        queue.create("a", key=key)
    assert sorted(one.key or "" for one in queue.drain()) == sorted(
        ("k", "K", "k ", " k", "\uff4b", "é", "e\u0301", "a\nb", "x" * 255)
    )


def test_the_longest_key_of_the_widest_characters_fits(queue: Session) -> None:
    key = "".join(chr(0x1F600 + n % 70) for n in range(255))
    created = queue.create("a" * 255, key=key)
    assert queue.try_create("a" * 255, key=key) == ("duplicate", created)


def test_a_key_given_twice_in_one_call_is_created_once(queue: Session) -> None:
    created = queue.create_many(["a", "a", "b", "a", "a"], keys=["z", "k", "k", "k", "z"])
    assert [outcome for outcome, _ in created] == ["created", "created", "created", "duplicate", "duplicate"]
    assert created[3][1] == created[1][1]
    assert created[4][1] == created[0][1]
    assert sorted(ids_of(queue.drain())) == [message for _, message in created[:3]]


def test_create_many_returns_created_and_duplicate_messages(queue: Session) -> None:
    live = queue.create("a", key="k2")
    created = queue.create_many(["a"] * 4, [b"1", b"2", b"3", b"4"], keys=["k3", "k2", None, "k1"])
    assert [outcome for outcome, _ in created] == ["created", "duplicate", "created", "created"]
    assert created[1][1] == live
    drained = queue.drain()
    assert [one.content for one in drained] == [b"x", b"1", b"3", b"4"]


def test_two_transactions_with_the_same_key_create_one_message(session: Open) -> None:
    first, second, worker = session(autocommit=False), session(), session()
    created = first.create("a", key="k")
    answers: list[tuple[str, int | None]] = []
    waiter = threading.Thread(target=lambda: answers.append(second.try_create("a", key="k")))
    waiter.start()
    wait_for_a_blocked_session(worker)
    first.connection.commit()
    waiter.join(10)
    assert answers == [("duplicate", created)]
    assert ids_of(worker.drain()) == [created]


def test_after_a_rollback_the_waiting_call_creates_its_message(session: Open) -> None:
    first, second, worker = session(autocommit=False), session(), session()
    first.create("a", key="k")
    answers: list[tuple[str, int | None]] = []
    waiter = threading.Thread(target=lambda: answers.extend(second.create_many(["a", "a"], keys=["k", "j"])))
    waiter.start()
    wait_for_a_blocked_session(worker)
    first.connection.rollback()
    waiter.join(10)
    assert [outcome for outcome, _ in answers] == ["created", "created"]


def test_a_key_is_free_once_the_completion_of_its_message_commits(session: Open) -> None:
    first, second, worker = session(autocommit=False), session(), session()
    created = second.create("a", key="k")
    first.connection.autocommit = True
    leased = first.lease()
    first.connection.autocommit = False
    first.complete([leased])
    assert second.try_create("a", key="k") == ("duplicate", created)  # its completion is not committed yet
    first.connection.commit()
    again = second.create("a", key="k")
    assert ids_of(worker.drain()) == [again]


def test_other_keys_and_no_key_do_not_wait(session: Open) -> None:
    first, second = session(autocommit=False), session()
    second.run("set lock_timeout = '50ms'")
    first.create("a", key="k")
    created = [second.create("a", key="other"), second.create("a"), second.create("b", key="k")]
    assert sorted(ids_of(second.take(10))) == sorted(created)


def wait_for_a_blocked_session(session: Session) -> None:
    for _ in range(500):
        if session.ask("select count(*) from pg_locks where not granted"):
            return
        session.run("select pg_sleep(0.01)")
    raise AssertionError("no session waited for a lock within 5 s")
