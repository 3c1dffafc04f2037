"""All scenarios, in the order in which they run."""

from tests.chaos.scenarios import (
    big_contents,
    clock_steps,
    dead_workers,
    disk_full,
    failover,
    hostile_settings,
    links,
    logical_copy,
    outage,
    pgbouncer,
    poison,
    restore,
    soak,
    terminate,
)

SCENARIOS = [
    *failover.SCENARIOS,
    restore.SCENARIO,
    logical_copy.SCENARIO,
    outage.SCENARIO,
    *disk_full.SCENARIOS,
    terminate.SCENARIO,
    *pgbouncer.SCENARIOS,
    links.SCENARIO,
    hostile_settings.SCENARIO,
    poison.SCENARIO,
    big_contents.SCENARIO,
    clock_steps.SCENARIO,
    dead_workers.SCENARIO,
    soak.SCENARIO,
]
