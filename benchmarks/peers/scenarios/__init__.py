"""The scenarios, one file each, in the order of the tables."""

from benchmarks.peers.scenario import Scenario
from benchmarks.peers.scenarios import (
    backlog,
    concurrency_cap,
    cpu_time,
    drain,
    enqueue_bulk,
    enqueue_one,
    fairness,
    held_snapshot,
    killed_worker,
    latency,
    limited_first,
    rate_limit,
    space,
)

SCENARIOS: tuple[Scenario, ...] = (
    enqueue_one.SCENARIO,
    enqueue_bulk.SCENARIO,
    drain.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    held_snapshot.SCENARIO,
    fairness.SCENARIO,
    limited_first.SCENARIO,
    rate_limit.SCENARIO,
    concurrency_cap.SCENARIO,
    killed_worker.SCENARIO,
    space.SCENARIO,
    cpu_time.SCENARIO,
)
