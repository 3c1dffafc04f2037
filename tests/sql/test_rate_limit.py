"""A9: release_interval_ms by the database's clock, and bursts."""

import itertools
import statistics
import time

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session

MS = 1_000  # leased_at is in microseconds


def take_releases(queue: Session, count: int, limit: int = 10) -> list[Reply]:
    """Dequeue without pauses until `count` messages were released."""
    found: list[Reply] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found += [one for one in queue.dequeue_once(limit) if one.outcome == "leased"]
    return found


def gaps_ms(found: list[Reply]) -> list[float]:
    times = sorted(one.leased_at for one in found)
    return [(after - before) / MS for before, after in itertools.pairwise(times)]


def test_releases_are_at_least_the_interval_apart(queue: Session) -> None:
    queue.set("a", release_interval_ms=60)
    queue.fill("a", 6)
    gaps = gaps_ms(take_releases(queue, 6))
    assert len(gaps) == 5
    assert min(gaps) >= 60
    assert statistics.median(gaps) < 1_000


def test_releases_to_several_sessions_are_an_interval_apart(session: Open) -> None:
    first, second = session(), session()
    first.set("a", release_interval_ms=60)
    first.fill("a", 5)
    found: list[Reply] = []
    while len(found) < 5:
        for one in (first, second):
            found += [reply for reply in one.dequeue_once(5) if reply.outcome == "leased"]
    assert min(gaps_ms(found)) >= 60


def test_a_batch_has_one_message_of_a_rate_limited_channel(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 10)
    queue.fill("b", 10)
    found = queue.take(20)
    assert sorted(one.channel for one in found) == ["a"] + ["b"] * 10


def test_the_reply_says_how_long_until_the_next_release(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 2)
    (leased,) = queue.dequeue()
    queue.complete([leased])
    (reply,) = queue.dequeue_once()
    while reply.wait_ms is not None and reply.wait_ms < 1_000:
        time.sleep(reply.wait_ms / 1_000)
        (reply,) = queue.dequeue_once()
    assert reply.outcome == "empty"
    assert reply.wait_ms is not None
    assert 50_000 < reply.wait_ms <= 60_000


def test_a_burst_is_released_at_once_and_then_evenly(queue: Session) -> None:
    queue.set("a", release_interval_ms=250, release_burst=4)
    queue.fill("a", 8)
    first = queue.dequeue_once(10)
    assert len(first) == 4
    rest = take_releases(queue, 4)
    start = first[0].leased_at
    for place, one in enumerate(sorted(rest, key=lambda one: one.leased_at), start=1):
        assert one.leased_at >= start + place * 250 * MS


def test_no_window_holds_more_than_burst_and_rate_allow(queue: Session) -> None:
    queue.set("a", release_interval_ms=50, release_burst=3)
    queue.fill("a", 12)
    times = sorted(one.leased_at for one in take_releases(queue, 12, limit=2))
    for first in range(12):
        for last in range(first, 12):
            allowed = 3 + (times[last] - times[first]) / (50 * MS)
            assert last - first + 1 <= allowed + 1e-6


def test_a_burst_is_allowed_again_after_a_quiet_time(queue: Session) -> None:
    queue.set("a", release_interval_ms=250, release_burst=3)
    queue.fill("a", 6)
    first = queue.dequeue_once(10)
    assert len(first) == 3
    queue.wait_until_us(first[0].leased_at + 3 * 250 * MS + 1)
    assert len(queue.dequeue(10)) == 3


def test_a_long_quiet_time_allows_no_more_than_a_burst(queue: Session) -> None:
    queue.set("a", release_interval_ms=200, release_burst=2)
    queue.create("a")
    leased = queue.lease()
    queue.wait_until_us(leased.leased_at + 800 * MS)
    queue.fill("a", 10)
    assert len(queue.dequeue(10)) == 2


def test_after_the_burst_is_lowered_the_interval_is_kept(queue: Session) -> None:
    queue.set("a", release_interval_ms=150, release_burst=5)
    queue.fill("a", 10)
    last = max(one.leased_at for one in queue.dequeue_once(5))
    queue.set("a", release_burst=1)
    (after,) = take_releases(queue, 1)
    assert after.leased_at - last >= 150 * MS


def test_a_higher_burst_takes_effect_on_the_next_dequeue(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 10)
    assert len(queue.dequeue(10)) == 1
    queue.set("a", release_burst=4)
    assert len(queue.dequeue(10)) == 3


def test_a_shorter_interval_takes_effect_at_once(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 4)
    first = queue.lease()
    queue.set("a", release_interval_ms=120)
    found = [first, *take_releases(queue, 2)]
    assert min(gaps_ms(found)) >= 120
    assert max(gaps_ms(found)) < 5_000


def test_a_longer_interval_applies_from_the_next_release_on(queue: Session) -> None:
    queue.set("a", release_interval_ms=20)
    queue.fill("a", 4)
    queue.lease()
    queue.set("a", release_interval_ms=200)
    assert min(gaps_ms(take_releases(queue, 3))) >= 200


def test_without_an_interval_all_messages_are_released(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 5)
    assert len(queue.take(5)) == 1
    queue.set("a", release_interval_ms=None)
    assert len(queue.take(5)) == 4


def test_a_rate_limited_channel_does_not_delay_others(queue: Session) -> None:
    queue.set("slow", release_interval_ms=60_000)
    queue.fill("slow", 100)
    queue.fill("fast", 100)
    assert len(queue.take(101)) == 101


def test_a_rate_limit_and_a_cap_hold_together(queue: Session) -> None:
    queue.set("a", release_interval_ms=30, release_burst=5, max_concurrency=2)
    queue.fill("a", 6)
    first = queue.dequeue_once(10)
    assert len(first) == 2
    assert queue.dequeue_once(10)[0].outcome != "leased"
    queue.complete(first)
    second = queue.dequeue(10)
    assert len(second) == 2
    queue.complete(second)
    found = first + second
    while len(found) < 6:
        more = queue.dequeue(10)
        queue.complete(more)
        found += more
    times = sorted(one.leased_at for one in found)
    assert times[5] - times[0] >= 30 * MS


def test_the_release_of_a_deferred_message_counts(queue: Session) -> None:
    queue.set("a", release_interval_ms=80)
    queue.create("a")
    first = queue.lease()
    queue.defer([first])
    (again,) = take_releases(queue, 1)
    assert again.message_id == first.message_id
    assert again.leased_at - first.leased_at >= 80 * MS


def test_the_interval_is_kept_within_one_transaction(queue: Session) -> None:
    """now() does not advance in a transaction, but the rate limit must."""
    queue.set("a", release_interval_ms=50)
    queue.fill("a", 2)
    with queue.connection.transaction():
        first = queue.lease()
        queue.wait_until_us(first.leased_at + 60 * MS)
        second = queue.lease()
    assert 50 * MS <= second.leased_at - first.leased_at < 10_000 * MS
