"""The simulation is reproducible, keeps the queue's promises, and releases what the real queue would."""

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from benchmarks.charts import simulation as charts
from benchmarks.simulation import __main__ as runner
from benchmarks.simulation.rules import SECOND, SimulatedPolicy, Turn, share_reply
from benchmarks.simulation.schedulers import Fifo, Rotation, same_policy
from benchmarks.simulation.simulate import simulate
from benchmarks.simulation.traffic import Parameters, Traffic, make_traffic
from lonnymq import NewMessage, Queue

SMALL = Parameters(tenants=5_000, duration_s=30, slots=20, largest=3_000, burst_from=20, slow_tenants=1)


@pytest.fixture(scope="session")
def traffic() -> Traffic:
    return make_traffic(SMALL)


def test_traffic_depends_only_on_the_seed(traffic: Traffic) -> None:
    again, other = make_traffic(SMALL), make_traffic(Parameters(**{**vars(SMALL), "seed": 8}))
    assert (again.at, again.tenant, again.slow, again.paying) == (
        traffic.at,
        traffic.tenant,
        traffic.slow,
        traffic.paying,
    )
    assert other.at != traffic.at


def test_a_few_tenants_send_most_of_the_messages(traffic: Traffic) -> None:
    largest = sorted(traffic.messages_of, reverse=True)
    assert sum(largest[: SMALL.tenants // 50]) > sum(largest) / 2


def test_every_message_is_released_once_under_every_policy(traffic: Traffic) -> None:
    for title, scheduler in runner.POLICIES.values():
        assert simulate(traffic, scheduler(traffic)).released == traffic.messages_of, title


def test_small_tenants_wait_less_with_turns_than_with_fifo(traffic: Traffic) -> None:
    with_fifo, with_turns = (
        simulate(traffic, Fifo()),
        simulate(traffic, Rotation(SMALL.tenants, same_policy(SimulatedPolicy()))),
    )
    small = [tenant for tenant, count in enumerate(traffic.messages_of) if count == 1]
    assert sum(map(with_turns.mean, small)) < sum(map(with_fifo.mean, small)) / 5


def test_a_cap_is_never_exceeded(traffic: Traffic) -> None:
    waits = simulate(traffic, Rotation(SMALL.tenants, same_policy(SimulatedPolicy(max_concurrency=3))))
    assert max(waits.max_in_flight) == 3


def test_a_rate_limit_spaces_releases() -> None:
    queue = Rotation(1, same_policy(SimulatedPolicy(release_interval_ms=100, release_burst=2)))
    for _ in range(10):
        queue.create(0, 0)
    released_at = [now for now in range(0, SECOND, 10_000) for _ in queue.dequeue(5, now)]
    assert released_at == [0, 0, *range(100_000, 900_000, 100_000)]


@pytest.mark.parametrize(
    ("limit", "weights", "wants", "given"),
    [
        (10, [1, 1, 1], [100, 100, 100], [4, 3, 3]),
        (8, [3, 1], [100, 100], [6, 2]),
        (10, [1, 1], [2, 100], [2, 8]),
        (10, [1, 1], [1, 2], [1, 2]),
        (4, [3, 3], [100, 100], [3, 1]),
    ],
)
def test_a_reply_is_divided_into_rounds_by_weight_then_single_turns(
    limit: int, weights: list[int], wants: list[int], given: list[int]
) -> None:
    turns = [
        Turn(tenant, SimulatedPolicy(weight=weight), 0, want, weight)
        for tenant, (weight, want) in enumerate(zip(weights, wants, strict=True))
    ]
    share_reply(limit, turns)
    assert [turn.given for turn in turns] == given


def test_tenants_that_return_and_the_rotation_are_served_alternately() -> None:
    queue = Rotation(6, same_policy(SimulatedPolicy()))
    for tenant in (0, 1):
        for _ in range(10):
            queue.create(tenant, 0)
    queue.dequeue(2, 1_000)
    for tenant in (2, 3, 4, 5):
        queue.create(tenant, 2_000)
    replies = [[tenant for tenant, _ in queue.dequeue(2, now)] for now in range(3_000, 7_000, 1_000)]
    assert replies == [[0, 2], [1, 3], [4, 5], [0, 1]]


def test_a_turn_cut_off_by_a_reply_continues_in_the_next_one() -> None:
    queue = Rotation(2, same_policy(SimulatedPolicy(weight=3)))
    for tenant in (0, 1):
        for _ in range(10):
            queue.create(tenant, tenant)
    queue.returning.clear()
    replies = [[tenant for tenant, _ in queue.dequeue(2, now)] for now in range(1_000, 7_000, 1_000)]
    assert replies == [[0, 0], [0, 1], [1, 1], [0, 0], [0, 1], [1, 1]]


@pytest.mark.parametrize("seed", range(6))
def test_the_real_queue_divides_every_reply_as_the_simulation_does(
    queue: Queue, connect: Callable[..., Any], seed: int
) -> None:
    """The rules exist twice, in SQL and in the simulation, and must remain the same."""
    rng = random.Random(seed)
    # Intervals so long that no second release becomes due within the test.
    limited = (
        SimulatedPolicy(release_interval_ms=3_600_000, release_burst=4),
        SimulatedPolicy(release_interval_ms=3_600_000),
    )
    weighted = (
        SimulatedPolicy(weight=2),
        SimulatedPolicy(weight=5),
        SimulatedPolicy(weight=3, max_concurrency=7),
    )
    kinds = [SimulatedPolicy(), SimulatedPolicy(max_concurrency=2), *(limited if seed % 2 else weighted)]
    policies = [rng.choice(kinds) for _ in range(8)]
    simulated = Rotation(len(policies), lambda tenant: policies[tenant])
    # The tenants are created one after the other, so that both start with the same order.
    began = datetime.now(UTC) + timedelta(hours=1)
    for tenant, policy in enumerate(policies):
        at = began + timedelta(seconds=tenant)
        queue.channel(str(tenant)).set(**vars(policy))
        count = rng.choice([1, 3, 30])
        queue.enqueue_many(NewMessage(channel=str(tenant), payload=None, at=at) for _ in range(count))
        for _ in range(count):
            simulated.create(tenant, int(at.timestamp() * SECOND) - 2 * 3600 * SECOND)
    # A scheduled message gives its channel no place among those that return.
    simulated.returning.clear()
    # New messages are registered before any is due.
    assert not queue.dequeue(100)
    advance_two_hours(connect())

    for limit in (3, 5, 10, 10, 1, 2, 40, 40):
        batch = queue.dequeue(limit)
        released = simulated.dequeue(limit, int(datetime.now(UTC).timestamp() * SECOND))
        expected = Counter(tenant for tenant, _ in released)
        assert Counter(int(message.channel) for message in batch) == expected
        if rng.random() < 0.5:
            queue.complete(batch)
            for tenant, _ in released:
                simulated.complete(tenant)


@pytest.fixture
def session(connect: Callable[..., Any]) -> Any:
    return connect()


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    ready = []
    for tenant in range(draw(st.integers(1, 6))):
        policy = SimulatedPolicy(
            weight=draw(st.sampled_from([1, 2, 5])),
            release_interval_ms=draw(st.sampled_from([None, None, 10])),
        )
        taken = draw(st.integers(0, policy.weight - 1))
        ready.append(Turn(tenant, policy, tenant, draw(st.integers(1, 30)), policy.weight, taken))
    return ready


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(limit=st.integers(1, 40), ready=turns())
def test_the_simulation_divides_a_reply_as_turn_share_does(
    session: Any, limit: int, ready: list[Turn]
) -> None:
    ready = ready[:limit]
    sizes = [turn.size for turn in ready]
    wants = [turn.want for turn in ready]
    takens = [turn.taken for turn in ready]
    can_fill = all(turn.want >= turn.size and not turn.taken for turn in ready)
    intervals = [turn.policy.interval or None for turn in ready]
    dues = [turn.due_at for turn in ready]
    shared = session.execute(
        "select shares, served_at, taken from turn_share(%s::integer, 1000, %s::integer, %s::bigint,"
        " %s, %s::bigint[], %s::integer[], %s::integer[], %s::bigint[], %s::bigint[])",
        [limit, len(ready), sum(sizes), can_fill, wants, sizes, takens, intervals, dues],
    )
    shares, served_at, taken = shared.fetchone()
    share_reply(limit, ready)
    assert [turn.given for turn in ready] == shares
    assert [turn.taken for turn in ready] == taken
    assert [turn.is_cut for turn in ready] == [at == due for at, due in zip(served_at, dues, strict=True)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    cap=st.none() | st.integers(1, 5),
    interval_ms=st.none() | st.integers(1, 50),
    burst=st.integers(1, 4),
    in_flight=st.integers(0, 6),
    behind_us=st.integers(-100_000, 300_000),
)
def test_the_simulation_computes_the_same_room_as_turn_assess(
    session: Any,
    cap: int | None,
    interval_ms: int | None,
    burst: int,
    in_flight: int,
    behind_us: int,
) -> None:
    now = 10 * SECOND
    policy = SimulatedPolicy(max_concurrency=cap, release_interval_ms=interval_ms, release_burst=burst)
    # With the last release now, release_at is at most a burst ahead.
    release_at = min(now + behind_us, now + burst * policy.interval)
    found = session.execute(
        "select (turn_assess('(0,1)', t, c, k, 0, 1, %(now)s)).allowed from"
        " jsonb_populate_record(null::turn, %(turn)s) t, jsonb_populate_record(null::channel, %(channel)s) c,"
        ' jsonb_populate_record(null::wake_total, \'{"done": 0, "waiting": 0}\') k',
        {
            "now": now,
            "turn": Jsonb({"last_at": now, "release_at": release_at, "in_flight": in_flight}),
            "channel": Jsonb({**vars(policy), "is_paused": False}),
        },
    )
    (room,) = found.fetchone()
    assert policy.room(in_flight, release_at, now) == (None if room == 2**31 - 1 else room)


def advance_two_hours(connection: Any) -> None:
    """Make messages that were scheduled for later due."""
    connection.execute("update message set dequeue_at = dequeue_at - 7200000")
    connection.execute("update turn set next_at = next_at - 7200000000")


def test_the_results_of_a_run_can_be_shown_as_charts_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "simulation.json"
    assert runner.main(["--tenants", "2000", "--output", str(path)]) == 0
    written = json.loads(path.read_text())
    assert [policy["name"] for policy in written["policies"]] == list(runner.POLICIES)
    made = charts.make(written)
    assert set(made.parts) == set(charts.PARTS)
    for chart in made.charts.values():
        assert ElementTree.fromstring(chart).tag.endswith("svg")
