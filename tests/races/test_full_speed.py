"""Producers and workers at full speed: every message is completed exactly once.

LONNYMQ_RACE_SECONDS makes the tests run longer.
"""

import os
import time
from collections import Counter

import pytest

from tests.conftest import Connect
from tests.races.load import Load, ids_of, processes, produce, work
from tests.races.monitor import InvariantMonitor
from tests.races.sessions import check, value

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.timeout(0)]

LONG = os.environ.get("LONNYMQ_RACE_SECONDS")
SECONDS = float(LONG or 2)
CHANNELS = 300


@pytest.mark.parametrize(("producers", "batch"), [(2, 100), (2, 3)], ids=["batches", "small calls"])
@pytest.mark.parametrize("cap", [None, 3], ids=["uncapped", "capped"])
def test_every_message_is_completed_exactly_once(
    connect: Connect, dsn: str, cap: int | None, producers: int, batch: int
) -> None:
    run_at_full_speed(connect, dsn, cap, producers, batch, SECONDS if LONG or batch > 3 else SECONDS / 2)


@pytest.mark.heavy
@pytest.mark.parametrize("cap", [None, 3], ids=["uncapped", "capped"])
def test_half_a_minute_at_full_speed_completes_every_message_exactly_once(
    connect: Connect, dsn: str, cap: int | None
) -> None:
    run_at_full_speed(connect, dsn, cap, producers=2, batch=100, seconds=max(SECONDS, 30.0))


def run_at_full_speed(
    connect: Connect, dsn: str, cap: int | None, producers: int, batch: int, seconds: float
) -> None:
    setup = connect()
    if cap:
        for n in range(CHANNELS):
            setup.execute(
                "select channel_set(%s, jsonb_build_object('max_concurrency', %s::integer))",
                [f"channel {n}", cap],
            )
    with processes(producers + 4) as pool, InvariantMonitor(connect()) as monitor:
        # With a cap it takes longer to process the messages than to create them.
        at_most = int((2000 if cap else 100_000) * seconds)
        until = time.time() + seconds
        loads = [Load(dsn, CHANNELS, until, batch, seed, at_most) for seed in range(producers + 4)]
        created = [pool.submit(produce, load) for load in loads[:producers]]
        worked = [pool.submit(work, load) for load in loads[producers:]]
        created_ids, worked_ids = ids_of(created), ids_of(worked)
    print(f"{len(created_ids)} messages, {monitor.checks} checks")
    assert monitor.problems == []
    assert [one for one, times in Counter(worked_ids).items() if times > 1] == []
    assert set(created_ids) == set(worked_ids)
    assert value(setup, "select count(*) from message") == value(setup, "select count(*) from lease") == 0
    assert check(setup) == []
