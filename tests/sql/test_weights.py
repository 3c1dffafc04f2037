"""A21: a channel of weight 3 gets three messages per turn."""

from collections import Counter

import pytest

from tests.sql.session import Session


def weighted(queue: Session, **weights: int) -> None:
    for channel, weight in weights.items():
        queue.set(channel, weight=weight)
        queue.fill(channel, 400)


@pytest.mark.parametrize(("limit", "shares"), [(8, {"a": 2, "b": 6}), (100, {"a": 25, "b": 75})])
def test_shares_follow_the_weights(queue: Session, limit: int, shares: dict[str, int]) -> None:
    weighted(queue, a=1, b=3)
    assert Counter(one.channel for one in queue.look(limit)) == shares
    assert Counter(one.channel for one in queue.look(limit)) == shares


def test_a_turn_is_three_messages_in_the_order_returned(queue: Session) -> None:
    weighted(queue, a=1, b=3)
    order = "".join(one.channel for one in queue.look(16))
    assert order in ("abbb" * 4, "bbba" * 4)


def test_the_order_within_a_weighted_channel_stays(queue: Session) -> None:
    weighted(queue, a=2, b=5)
    replies = queue.look(100)
    for channel in "ab":
        mine = [one.message_id for one in replies if one.channel == channel]
        assert mine == sorted(mine)


def test_weights_that_do_not_divide_the_limit_leave_nothing_over(queue: Session) -> None:
    weighted(queue, a=2, b=3, c=5)
    for limit in (7, 13, 101):
        counts = Counter(one.channel for one in queue.look(limit))
        assert counts.total() == limit


def test_over_many_calls_the_weights_hold_at_any_limit(queue: Session) -> None:
    weighted(queue, a=1, b=3)
    counts: Counter[str] = Counter()
    for _ in range(40):
        counts += Counter(one.channel for one in queue.look(4))
    assert counts == {"a": 40, "b": 120}


def test_a_weight_does_not_break_a_cap(queue: Session) -> None:
    queue.set("a", weight=1_000, max_concurrency=2)
    queue.fill("a", 50)
    assert len(queue.take(50)) == 2


def test_a_changed_weight_counts_from_the_next_dequeue(queue: Session) -> None:
    weighted(queue, a=1, b=1)
    assert Counter(one.channel for one in queue.look(8)) == {"a": 4, "b": 4}
    queue.set("b", weight=7)
    assert Counter(one.channel for one in queue.look(8)) == {"a": 1, "b": 7}
    queue.set("b", weight=None)
    assert Counter(one.channel for one in queue.look(8)) == {"a": 4, "b": 4}
