"""A21: a channel of weight 3 gets three messages per turn."""

from collections import Counter

import pytest

from tests.sql.session import Session

QUANTUM = 4
"""The default of the setting: how many messages a turn is worth at weight 1 in long replies."""


def fill_weighted_channels(queue: Session, **weights: int) -> None:
    """Leave many messages in channels that have all been served before: a first turn has no weight."""
    for channel, weight in weights.items():
        queue.set(channel, weight=weight)
        queue.fill(channel, 401)
    begun = queue.dequeue_once(len(weights))
    assert {one.channel for one in begun} == set(weights)


@pytest.mark.parametrize("limit", [8, 96])
def test_shares_are_proportional_to_the_weights(queue: Session, limit: int) -> None:
    fill_weighted_channels(queue, a=1, b=3)
    for _ in range(2):
        counts = Counter(one.channel for one in queue.dequeue_once(limit))
        assert counts == {"a": limit / 4, "b": limit * 3 / 4}


def test_a_reply_that_is_no_multiple_of_all_turns_is_right_within_one_turn(queue: Session) -> None:
    fill_weighted_channels(queue, a=1, b=3)
    counts: Counter[str] = Counter()
    for _ in range(4):
        counts += Counter(one.channel for one in queue.dequeue_once(100))
        assert abs(counts["b"] - 3 * counts["a"]) <= 4 * QUANTUM


def test_a_turn_of_weight_3_is_three_messages_in_a_row(queue: Session) -> None:
    fill_weighted_channels(queue, a=1, b=3)
    order = "".join(one.channel for one in queue.dequeue_once(16))
    assert order in ("abbb" * 4, "bbba" * 4)


def test_a_weight_keeps_the_order_within_a_channel(queue: Session) -> None:
    fill_weighted_channels(queue, a=2, b=5)
    replies = queue.dequeue_once(100)
    for channel in "ab":
        mine = [one.message_id for one in replies if one.channel == channel]
        assert mine == sorted(mine)


def test_weights_that_do_not_divide_the_limit_still_fill_the_reply(queue: Session) -> None:
    fill_weighted_channels(queue, a=2, b=3, c=5)
    for limit in (7, 13, 101):
        counts = Counter(one.channel for one in queue.dequeue_once(limit))
        assert counts.total() == limit


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 10, 16])
def test_weights_hold_over_many_calls_at_any_limit(queue: Session, limit: int) -> None:
    fill_weighted_channels(queue, a=1, b=3)
    order: list[str] = []
    while len(order) < 160:
        order += [one.channel for one in queue.dequeue_once(limit)]
    counts = Counter(order)
    assert abs(counts["b"] - 3 * counts["a"]) <= 3


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_one_weighted_channel_among_many_has_its_share_at_any_limit(queue: Session, limit: int) -> None:
    fill_weighted_channels(queue, heavy=3, **{f"c{n}": 1 for n in range(10)})
    order: list[str] = []
    while len(order) < 130:
        order += [one.channel for one in queue.dequeue_once(limit)]
    counts = Counter(order)
    assert abs(counts["heavy"] - 30) <= 3
    assert max(counts[f"c{n}"] for n in range(10)) - min(counts[f"c{n}"] for n in range(10)) <= 1


def test_an_interrupted_turn_without_more_messages_blocks_nobody(queue: Session) -> None:
    queue.set("b", weight=3)
    queue.fill("b", 1)
    queue.fill("a", 3)
    assert sorted(one.channel for _ in range(4) for one in queue.dequeue_once(1)) == ["a", "a", "a", "b"]
    queue.fill("b", 2)
    assert [one.channel for _ in range(2) for one in queue.dequeue_once(1)] == ["b", "b"]


def test_a_weight_does_not_exceed_a_cap(queue: Session) -> None:
    queue.set("a", weight=1_000, max_concurrency=2)
    queue.fill("a", 50)
    assert len(queue.take(50)) == 2


def test_a_changed_weight_applies_from_the_next_dequeue(queue: Session) -> None:
    fill_weighted_channels(queue, a=1, b=1)
    assert Counter(one.channel for one in queue.dequeue_once(8)) == {"a": 4, "b": 4}
    queue.set("b", weight=7)
    assert Counter(one.channel for one in queue.dequeue_once(8)) == {"a": 1, "b": 7}
    queue.set("b", weight=None)
    assert Counter(one.channel for one in queue.dequeue_once(8)) == {"a": 4, "b": 4}


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 10])
def test_weights_hold_over_a_fixed_number_of_calls(queue: Session, limit: int) -> None:
    fill_weighted_channels(queue, a=1, b=3)
    counts: Counter[str] = Counter()
    for _ in range(240 // limit):
        counts += Counter(one.channel for one in queue.dequeue_once(limit))
    assert abs(counts["b"] - 3 * counts["a"]) <= 4 * limit
