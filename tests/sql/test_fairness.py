"""A7: channels take turns, least recently served first."""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session


def begin(queue: Session, channels: Iterable[str], count: int) -> None:
    """Leave so many messages in channels that have been served: new ones would have a queue of their own."""
    names = list(channels)
    for channel in names:
        queue.fill(channel, count + 1)
    assert {one.channel for one in queue.dequeue_once(len(names))} == set(names)


@pytest.mark.parametrize("limit", [1, 10, 50, 100, 500])
def test_a_huge_backlog_of_one_tenant_delays_others_by_one_turn_each(queue: Session, limit: int) -> None:
    """Counts the messages processed until the slowest of ten small tenants is done: 110 is ideal."""
    for _ in range(2):
        queue.fill("big", 5_000)
    for n in range(10):
        queue.fill(f"small{n}", 10)
    handled, left = 0, 100
    while left:
        replies = queue.dequeue(limit)
        assert replies
        for one in replies:
            handled += 1
            left -= one.channel != "big"
            if not left:
                break
        queue.complete(replies)
    assert handled <= 115


def test_a_new_tenant_is_served_at_once_beside_a_busy_one(queue: Session) -> None:
    queue.fill("big", 1_000)
    queue.complete(queue.take(100))
    newcomer = queue.create("small")
    assert newcomer in [one.message_id for one in queue.take(2)]


def test_channels_take_turns_one_by_one(queue: Session) -> None:
    begin(queue, "abc", 5)
    order = "".join(queue.lease().channel for _ in range(15))
    assert sorted(order[:3]) == ["a", "b", "c"]
    assert order == order[:3] * 5


def test_the_least_recently_served_channel_comes_first(queue: Session) -> None:
    begin(queue, "abcd", 5)
    first = {one.channel for one in queue.dequeue_once(2)}
    second = queue.lease().channel
    (third,) = set("abcd") - first - {second}
    order = [one.channel for one in queue.dequeue_once(4)]
    assert (order[0], set(order[1:3]), order[3]) == (third, first, second)


def test_messages_of_a_reply_are_in_rounds_over_the_channels(queue: Session) -> None:
    for channel in "abcd":
        queue.fill(channel, 25)
    replies = queue.dequeue(100)
    assert len(replies) == 100
    rounds = [replies[n : n + 4] for n in range(0, 100, 4)]
    assert all({one.channel for one in part} == set("abcd") for part in rounds)


@pytest.mark.parametrize(
    ("channels", "limit"), [(3, 10), (7, 10), (10, 100), (11, 100), (3, 500), (4, 2), (9, 9)]
)
def test_a_reply_is_shared_evenly_and_the_remainder_rotates(
    queue: Session, channels: int, limit: int
) -> None:
    queue.create_many([f"c{n}" for n in range(channels) for _ in range(limit + 5)])
    turn = max(1, min(4, limit // 8))  # the setting "quantum" is 4
    counts: Counter[str] = Counter()
    for _ in range(3):
        replies = queue.dequeue_once(limit)
        assert len(replies) == limit
        mine = Counter(one.channel for one in replies)
        shares = [mine.get(f"c{n}", 0) for n in range(channels)]
        assert max(shares) - min(shares) <= turn
        counts += mine
    totals = [counts[f"c{n}"] for n in range(channels)]
    assert max(totals) - min(totals) <= turn


def test_what_small_channels_leave_goes_to_the_others(queue: Session) -> None:
    queue.fill("big", 200)
    queue.fill("small", 3)
    replies = queue.dequeue_once(100)
    assert Counter(one.channel for one in replies) == {"big": 97, "small": 3}


@pytest.mark.parametrize("limit", [1, 2, 7, 50, 333, 500])
def test_no_reply_is_longer_than_the_limit(queue: Session, limit: int) -> None:
    queue.create_many([f"c{n % 37}" for n in range(900)])
    queue.set("c1", weight=100)
    queue.set("c2", weight=7)
    total = 0
    while replies := queue.dequeue(limit):
        assert len(replies) <= limit
        total += len(replies)
    assert total == 900


def test_every_active_channel_is_served_between_two_turns_of_another(queue: Session) -> None:
    """Invariant 5 with random arrivals: of channels that always have messages, none passes another."""
    rng = random.Random(7)
    waiting: Counter[str] = Counter()
    active_since: dict[str, int] = {}
    turns: list[str] = []
    for step in range(400):
        if step % 3 == 0:
            channel = f"c{rng.randrange(8)}"
            count = rng.randint(1, 6)
            queue.fill(channel, count)
            if not waiting[channel]:
                active_since[channel] = len(turns)
            waiting[channel] += count
        replies = queue.dequeue(1)
        for one in replies:
            waiting[one.channel] -= 1
            previous = max((n for n, name in enumerate(turns) if name == one.channel), default=-1)
            # A channel that was idle meanwhile may come earlier (see test_returning.py).
            if previous >= active_since[one.channel]:
                between = set(turns[previous + 1 :])
                for other, since in active_since.items():
                    if other != one.channel and waiting[other] and since <= previous:
                        assert other in between, f"{one.channel} was served twice before {other}"
            turns.append(one.channel)
            if not waiting[one.channel]:
                active_since.pop(one.channel, None)
    assert len(turns) > 300


def test_a_redelivery_waits_for_its_channels_turn(queue: Session) -> None:
    """Expired leases of a big tenant are not served before a small tenant."""
    queue.fill("big", 300)
    lost = queue.take(300)
    queue.fill("big", 100)
    small = queue.create("small")
    queue.expire(lost)
    assert small in [one.message_id for one in queue.take(3)]


def test_many_creates_of_one_tenant_do_not_hide_another_tenant(session: Open) -> None:
    """Rule 3: every call adds a wake."""
    queue, worker = session(), session()
    with queue.connection.transaction():
        for _ in range(1_500):
            queue.create("big")
    small = queue.create("small")
    found: list[Reply] = []
    for _ in range(3):
        found += worker.dequeue(5)
    assert small in [one.message_id for one in found]


def test_a_priority_does_not_put_a_channel_ahead_of_others(queue: Session) -> None:
    begin(queue, ["urgent", "calm"], 0)
    queue.fill("urgent", 100, dequeue_ats=[-1_000] * 100)
    queue.fill("calm", 100)
    queue.dequeue_once(2)
    order = [queue.lease().channel for _ in range(20)]
    assert Counter(order) == {"urgent": 10, "calm": 10}
    assert all(before != after for before, after in pairwise(order))


def test_a_defer_does_not_put_a_channel_ahead_of_others(queue: Session) -> None:
    begin(queue, "abc", 4)
    seen = []
    for _ in range(9):
        leased = queue.lease()
        seen.append(leased.channel)
        queue.defer([leased], delay_ms=0)
    assert Counter(seen) == {"a": 3, "b": 3, "c": 3}


def test_a_rate_limited_channel_that_got_nothing_keeps_its_place(queue: Session) -> None:
    """Twenty busy channels, and one that may release a message per millisecond and is read in every call."""
    queue.set("limited", release_interval_ms=1)
    for n in range(20):
        queue.fill(f"c{n}", 100)
    served: Counter[str] = Counter()
    while served.total() < 400:
        queue.create("limited")
        served += Counter(one.channel for one in queue.dequeue(5))
    assert served["limited"] >= served["c0"] / 2
