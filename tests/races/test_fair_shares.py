"""Invariant 5 and A21: tenants take turns, also with several workers, weights, caps and rate limits."""

import random
import threading
import time
from collections import Counter
from itertools import pairwise

import pytest

from tests.conftest import Connect
from tests.races.hints import pretend_expensive_scan
from tests.races.sessions import Leased, Session, complete, create, create_in, dequeue, drain, value

pytestmark = pytest.mark.race


@pytest.mark.parametrize("limit", [1, 3, 10, 100])
def test_a_large_tenant_delays_small_ones_by_one_turn_each(connect: Connect, limit: int) -> None:
    session = connect()
    create(session, "large", 2000)
    small = [f"small {n}" for n in range(10)]
    create_in(session, small * 10)
    handled, left = 0, 100
    while left:
        leased = dequeue(session, limit)
        for one in leased:
            handled += 1
            left -= one.channel != "large"
            if not left:
                break
        complete(session, leased)
    assert handled <= 115


def test_every_other_channel_is_served_between_two_turns_of_one(connect: Connect) -> None:
    session = connect()
    channels = [f"channel {n}" for n in range(25)]
    session.execute("select queue_set('{\"quantum\": 1}')")
    create_in(session, channels * 21)
    assert {one.channel for one in dequeue(session, 25)} == set(channels)
    order = []
    for _ in range(100):
        leased = dequeue(session, 4)
        order += [one.channel for one in leased]
        complete(session, leased)
    for n in range(0, 400, 25):
        assert Counter(order[n : n + 25]) == Counter(channels)


def test_several_workers_serve_all_channels_about_equally(connect: Connect) -> None:
    sessions = [connect() for _ in range(4)]
    channels = [f"channel {n}" for n in range(30)]
    create_in(sessions[0], channels * 150)
    served: list[Leased] = []

    def work(session: Session) -> None:
        while len(served) < 1500:
            leased = dequeue(session, 3)
            complete(session, leased)
            served.extend(leased)

    threads = [threading.Thread(target=work, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = Counter(one.channel for one in served[:1500])
    assert set(counts) == set(channels)
    assert min(counts.values()) >= 15, counts
    assert max(counts.values()) <= 80, counts


def test_weights_caps_and_rates_hold_together(connect: Connect) -> None:
    session = connect()
    policies = {
        "plain": "{}",
        "heavy": '{"weight": 3}',
        "capped": '{"weight": 5, "max_concurrency": 2}',
        "limited": '{"weight": 5, "release_interval_ms": 3600000, "release_burst": 4}',
        "both": '{"weight": 9, "max_concurrency": 3, "release_interval_ms": 3600000, "release_burst": 2}',
        "paused": '{"weight": 100, "is_paused": true}',
    }
    for channel, policy in policies.items():
        session.execute("select channel_set(%s, %s)", [channel, policy])
    create_in(session, list(policies) * 100)
    leased = dequeue(session, 40)
    for _ in range(10):
        leased += dequeue(session, 10)
    counts = Counter(one.channel for one in leased)
    assert len(leased) == 140
    assert (counts["capped"], counts["limited"], counts["both"], counts["paused"]) == (2, 4, 2, 0)
    assert counts["heavy"] >= 2 * counts["plain"]


def test_the_largest_limit_returns_what_fits_into_a_reply(connect: Connect) -> None:
    session = connect()
    create_in(session, [f"channel {n}" for n in range(700)] * 3)
    total = 0
    while leased := dequeue(session, 10_000):
        complete(session, leased)
        total += len(leased)
    assert total == 2100
    assert value(session, "select count(*) from lease") == 0
    drain(session)


def test_concurrent_workers_never_exceed_a_burst(connect: Connect) -> None:
    sessions = [connect() for _ in range(4)]
    sessions[0].execute("""select channel_set('a', '{"release_interval_ms": 20, "release_burst": 5}')""")
    create(sessions[0], "a", 200)
    released: list[int] = []
    barrier = threading.Barrier(4, timeout=20)

    def work(session: Session) -> None:
        barrier.wait()
        for _ in range(300):
            leased = dequeue(session, 3)
            complete(session, leased)
            released.extend(one.leased_at for one in leased)

    threads = [threading.Thread(target=work, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    released.sort()
    assert len(released) > 5
    for first, last in zip(released, released[5:], strict=False):
        assert last - first >= 20_000 - 1, "six releases within one interval"
    window = [last - first for first, last in zip(released, released[10:], strict=False)]
    assert min(window, default=10**9) >= 6 * 20_000 - 1


def test_capped_channels_that_are_freed_together_take_turns(connect: Connect) -> None:
    """Their wakes have no time; channels that get no share now must be found by the next calls."""
    producer, worker = connect(), connect()
    capped = [f"capped {n}" for n in range(8)]
    for name in capped:
        producer.execute("""select channel_set(%s, '{"max_concurrency": 1}')""", [name])
    create_in(producer, [*capped, "x", "y"] * 30)
    first = dequeue(worker, 10)
    assert len({one.channel for one in first}) == 10
    pretend_expensive_scan(worker, 0.125)
    complete(producer, [one for one in first if one.channel in capped])
    served: list[str] = []
    for _ in range(30):
        create_in(producer, ["x", "y"])
        leased = dequeue(worker)
        complete(producer, leased)
        served += [one.channel for one in leased]
    assert Counter(served).keys() == {*capped, "x", "y"}
    assert max(Counter(served).values()) - min(Counter(served).values()) <= 1


@pytest.mark.parametrize("quantum", [1, 4])
@pytest.mark.parametrize(("channels", "workers"), [(2, 1), (5, 1), (30, 1), (5, 3)])
def test_no_channel_is_a_turn_ahead_with_varying_limits(
    connect: Connect, channels: int, workers: int, quantum: int
) -> None:
    """Scheduled messages, which count as waiting, do not change the shares."""
    rng = random.Random(channels)
    producer, sessions = connect(), [connect() for _ in range(workers)]
    producer.execute("select queue_set('{\"quantum\": 1}')")
    names = [f"tenant {n}" for n in range(channels)]
    future = int(time.time() * 1000) + 3_600_000
    for _ in range(10):
        create_in(producer, names * 20)
    create_in(producer, [name for name in names for _ in range(rng.choice([0, 0, 3, 300]))], at=future)
    # All are served once: a new channel has no place in the rotation yet.
    for session in sessions:
        counts = Counter(one.channel for one in dequeue(session, channels))
        assert counts == dict.fromkeys(names, 1)
    producer.execute("select queue_set(jsonb_build_object('quantum', %s::integer))", [quantum])
    for _ in range(60 if quantum == 1 else 20 * channels // 40 + 2):
        # A larger quantum makes no channel lead by more than a turn if all replies have the same length.
        limit = rng.choice(
            [1, 1, 2, 3, 7, 10, channels, channels + 1, 2 * channels - 1] if quantum == 1 else [40]
        )
        leased = dequeue(rng.choice(sessions), limit)
        assert len(leased) == limit
        counts.update(one.channel for one in leased)
        assert max(counts.values()) - min(counts.values()) <= quantum


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize("wrong", ["0", "-1000", "1000000000", "-waiting"])
def test_wrong_waiting_counts_do_not_stop_a_channel(connect: Connect, wrong: str) -> None:
    session = connect()
    names = [f"tenant {n}" for n in range(5)]
    create_in(session, names * 10)
    assert len(dequeue(session, 5)) == 5
    session.execute(f"update turn set waiting = {wrong} where channel_id % 2 = 0")
    worked = drain(session)
    assert Counter(one.channel for one in worked) == dict.fromkeys(names, 9)


def test_rate_limits_of_many_channels_in_one_reply_are_exact(connect: Connect) -> None:
    session = connect()
    names = [f"tenant {n}" for n in range(200)]
    for name in names:
        session.execute("""select channel_set(%s, '{"release_interval_ms": 40}')""", [name])
    create_in(session, names * 6)
    times: dict[str, list[int]] = {name: [] for name in names}
    until = time.monotonic() + 20
    while sum(map(len, times.values())) < 1200:
        assert time.monotonic() < until
        for one in dequeue(session, 500):
            times[one.channel].append(one.leased_at)
    assert min(b - a for stamps in times.values() for a, b in pairwise(stamps)) >= 40_000
