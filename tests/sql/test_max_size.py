"""A19: max_size drops what a full channel is given."""

import pytest

from tests.sql.session import Session


def outcomes(made: list[tuple[str, int | None]]) -> list[str]:
    return [outcome for outcome, _ in made]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_full_channel_drops(queue: Session, is_known: bool) -> None:
    queue.set("a", max_size=2)
    if is_known:
        queue.look()
    assert outcomes([queue.try_create("a") for _ in range(4)]) == ["created", "created", "dropped", "dropped"]
    assert queue.try_create("a") == ("dropped", None)
    assert len(queue.drain()) == 2
    assert outcomes([queue.try_create("a")]) == ["created"]


def test_others_are_not_concerned(queue: Session) -> None:
    queue.set("a", max_size=0)
    assert queue.try_create("a")[0] == "dropped"
    assert queue.try_create("b")[0] == "created"


def test_many_in_one_call_fill_up_what_is_left(queue: Session) -> None:
    queue.set("a", max_size=5)
    queue.fill("a", 2)
    made = queue.create_many(["a", "b", "a", "a", "b", "a", "a"])
    assert outcomes(made) == ["created", "created", "created", "created", "created", "dropped", "dropped"]
    assert [message is None for _, message in made] == [False] * 5 + [True] * 2
    assert len(queue.drain()) == 7


def test_room_comes_back_when_messages_end(queue: Session) -> None:
    queue.set("a", max_size=3)
    queue.fill("a", 3)
    taken = queue.take(3)
    queue.complete(taken[:1])
    assert queue.try_create("a")[0] == "created"
    queue.bury(taken[1:2])
    assert queue.try_create("a")[0] == "created"


def test_a_duplicate_of_a_full_channel_is_a_duplicate(queue: Session) -> None:
    queue.set("a", max_size=1)
    made = queue.create("a", key="k")
    assert queue.try_create("a", key="k") == ("duplicate", made)
    assert queue.create_many(["a", "a"], keys=["k", "j"]) == [("duplicate", made), ("dropped", None)]


def test_a_raised_size_makes_room_and_a_lowered_one_drops_nothing_live(queue: Session) -> None:
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
    made = queue.create("a")
    queue.cancel(made)
    assert queue.try_create("a")[0] == "created"


def test_a_transaction_counts_its_own_messages(queue: Session) -> None:
    queue.set("a", max_size=2)
    with queue.connection.transaction():
        assert outcomes([queue.try_create("a") for _ in range(3)]) == ["created", "created", "dropped"]


def test_a_message_that_is_cancelled_while_it_is_worked_leaves_a_size_without_end_as_it_is(
    queue: Session,
) -> None:
    queue.set("a", max_size=2**63 - 1)
    queue.create("a")
    [taken] = queue.take(1)
    queue.cancel(taken.message_id)
    assert outcomes(queue.create_many(["a"])) == ["created"]
