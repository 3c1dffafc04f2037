"""A channel that returns from idleness is served next; at least half of a reply follows the rotation."""

from collections import Counter

import pytest

from tests.sql.session import Session

BUSY = 200
"""Channels that always have messages."""


def served_before(queue: Session, channel: str, limit: int) -> int:
    """Dequeue until the channel gets a message; return how many other messages came first."""
    count = 0
    while True:
        replies = queue.dequeue_once(limit)
        assert replies
        for one in replies:
            if one.channel == channel:
                return count
            count += 1
        assert count < 10 * BUSY


def make_busy_channels(queue: Session, count: int = BUSY, messages: int = 30) -> None:
    queue.create_many([f"busy{n}" for n in range(count) for _ in range(messages)])
    served: Counter[str] = Counter()
    while len(served) < count:
        served += Counter(one.channel for one in queue.dequeue_once(100))


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_channel_that_returns_is_served_in_the_next_two_replies(queue: Session, limit: int) -> None:
    queue.create("idle")
    queue.complete(queue.take(1))
    make_busy_channels(queue)
    for _ in range(5):
        queue.create("idle")
        assert served_before(queue, "idle", limit) < 2 * limit


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_new_channel_is_served_in_the_next_two_replies(queue: Session, limit: int) -> None:
    make_busy_channels(queue)
    for n in range(5):
        queue.create(f"new{n}")
        assert served_before(queue, f"new{n}", limit) < 2 * limit


def test_a_channel_whose_scheduled_message_is_due_has_a_place_like_any_other(queue: Session) -> None:
    queue.create("idle")
    queue.complete(queue.take(1))
    queue.create("idle", dequeue_at=queue.epoch_ms() + 3_600_000)
    assert queue.dequeue(1) == []
    make_busy_channels(queue)
    queue.create("idle")
    assert served_before(queue, "idle", 10) < 20


def test_returning_channels_are_served_in_the_order_in_which_they_returned(queue: Session) -> None:
    make_busy_channels(queue)
    names = [f"new{n}" for n in range(40)]
    order: list[str] = []
    for name in names:
        queue.create(name)
        order += [one.channel for one in queue.dequeue_once(1)]
    while not set(names) <= set(order):
        order += [one.channel for one in queue.dequeue_once(1)]
        assert len(order) < 4 * len(names)
    mine = [name for name in order if name in names]
    assert mine == sorted(mine, key=names.index)


@pytest.mark.parametrize("is_urgent", [False, True])
@pytest.mark.parametrize("limit", [1, 10, 40, 100])
def test_a_flood_of_new_channels_leaves_half_to_the_others(
    queue: Session, limit: int, is_urgent: bool
) -> None:
    """Twenty new channels before each dequeue, or twice what a call asks for: more than can be served."""
    established = 10
    make_busy_channels(queue, established, messages=400)
    dequeue_at = -1_000 if is_urgent else None
    last_served = dict.fromkeys((f"busy{n}" for n in range(established)), 0)
    served = 0
    for call in range(120 if limit <= 10 else 30):
        for n in range(max(20, 2 * limit) if limit > 1 else 3):
            queue.create(f"new{call}_{n}", dequeue_at=dequeue_at)
        replies = queue.dequeue_once(limit)
        assert len(replies) == limit
        for one in replies:
            served += 1
            if one.channel in last_served:
                last_served[one.channel] = served
        # A rotation of the channels that were there before is a turn of each.
        rotation = established * max(1, min(4, limit // 8))
        assert max(served - at for at in last_served.values()) <= 2 * rotation + limit


def test_channels_that_come_and_go_do_not_starve_those_that_wait(queue: Session) -> None:
    """Forty channels return with one message as soon as it is leased; ten have a backlog."""
    make_busy_channels(queue, 10, messages=100)
    for n in range(40):
        queue.create(f"short{n}")
    counts: Counter[str] = Counter()
    for _ in range(60):
        replies = queue.dequeue_once(10)
        for one in replies:
            counts[one.channel[:4]] += 1
            if one.channel.startswith("short"):
                queue.create(one.channel)
        queue.complete(replies)
    assert 120 <= counts["busy"] <= 300


def test_a_weight_does_not_count_for_a_channel_that_returns(queue: Session) -> None:
    """A heavy channel that pauses between its messages takes no more than the rotation leaves."""
    make_busy_channels(queue, 20)
    queue.set("heavy", weight=1_000)
    queue.fill("heavy", 200)
    replies = queue.dequeue_once(50)
    assert Counter(one.channel == "heavy" for one in replies)[False] >= 25


def test_a_paused_channel_that_returns_is_served_after_its_pause(queue: Session) -> None:
    make_busy_channels(queue)
    queue.set("idle", is_paused=True)
    queue.create("idle")
    assert "idle" not in {one.channel for _ in range(3) for one in queue.dequeue_once(100)}
    queue.set("idle", is_paused=False)
    assert served_before(queue, "idle", 100) < BUSY * 8
    assert queue.problems() == []
