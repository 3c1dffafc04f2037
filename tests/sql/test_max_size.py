"""A19: a channel with max_size waiting messages drops new ones."""

import pytest

from tests.sql.session import Session


def outcomes(created: list[tuple[str, int | None]]) -> list[str]:
    return [outcome for outcome, _ in created]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_full_channel_drops_new_messages(queue: Session, is_known: bool) -> None:
    queue.set("a", max_size=2)
    if is_known:
        queue.dequeue_once()
    assert outcomes([queue.try_create("a") for _ in range(4)]) == ["created", "created", "dropped", "dropped"]
    assert queue.try_create("a") == ("dropped", None)
    assert len(queue.drain()) == 2
    assert outcomes([queue.try_create("a")]) == ["created"]


def test_other_channels_are_not_affected(queue: Session) -> None:
    queue.set("a", max_size=0)
    assert queue.try_create("a")[0] == "dropped"
    assert queue.try_create("b")[0] == "created"


def test_create_many_fills_a_channel_and_drops_the_rest(queue: Session) -> None:
    queue.set("a", max_size=5)
    queue.fill("a", 2)
    created = queue.create_many(["a", "b", "a", "a", "b", "a", "a"])
    assert outcomes(created) == ["created", "created", "created", "created", "created", "dropped", "dropped"]
    assert [message is None for _, message in created] == [False] * 5 + [True] * 2
    assert len(queue.drain()) == 7


def test_completed_and_buried_messages_make_room(queue: Session) -> None:
    queue.set("a", max_size=3)
    queue.fill("a", 3)
    taken = queue.take(3)
    queue.complete(taken[:1])
    assert queue.try_create("a")[0] == "created"
    queue.bury(taken[1:2])
    assert queue.try_create("a")[0] == "created"


def test_a_duplicate_in_a_full_channel_is_reported_as_duplicate(queue: Session) -> None:
    queue.set("a", max_size=1)
    created = queue.create("a", key="k")
    assert queue.try_create("a", key="k") == ("duplicate", created)
    assert queue.create_many(["a", "a"], keys=["k", "j"]) == [("duplicate", created), ("dropped", None)]


def test_a_lowered_max_size_drops_no_waiting_messages(queue: Session) -> None:
    queue.set("a", max_size=2)
    queue.fill("a", 2)
    queue.set("a", max_size=3)
    assert queue.try_create("a")[0] == "created"
    queue.set("a", max_size=1)
    assert queue.try_create("a")[0] == "dropped"
    assert len(queue.drain()) == 3
    queue.set("a", max_size=None)
    assert outcomes(queue.create_many(["a"] * 10)) == ["created"] * 10


def test_a_cancelled_message_makes_room(queue: Session) -> None:
    queue.set("a", max_size=1)
    created = queue.create("a")
    queue.cancel(created)
    assert queue.try_create("a")[0] == "created"


def test_a_transaction_counts_its_own_messages(queue: Session) -> None:
    queue.set("a", max_size=2)
    with queue.connection.transaction():
        assert outcomes([queue.try_create("a") for _ in range(3)]) == ["created", "created", "dropped"]


def test_the_largest_max_size_works_with_a_negative_waiting_count(
    queue: Session,
) -> None:
    queue.set("a", max_size=2**63 - 1)
    queue.create("a")
    [taken] = queue.take(1)
    queue.cancel(taken.message_id)
    assert outcomes(queue.create_many(["a"])) == ["created"]
