"""Messages that kill or block their worker's process, among harmless ones of several tenants.

One worker is a single process that a service manager restarts, the other one supervises two processes.
"""

import time
from collections import Counter
from typing import Any

from tests.chaos import servers
from tests.chaos.account import Account, State
from tests.chaos.harness import Harness, entries_of
from tests.chaos.ledger import Event
from tests.chaos.run import Run, Scenario

MAX_ATTEMPTS = 5
# An attempt that dies with its process may be repeated once or twice before the queue counts it.
MAX_STARTS = MAX_ATTEMPTS + 2
LEASE_S = 2
HARMLESS = ["tenant 1", "tenant 2", "tenant 3"]
# For how long they block at least.
POISONS = {"exit": 0.0, "kill": 0.0, "block": 3 * LEASE_S}


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn, caps={})
    workers = [
        harness.worker(lease_s=LEASE_S, concurrency=8),
        harness.worker(lease_s=LEASE_S, concurrency=8, processes=2),
    ]
    for worker in workers:
        worker.is_expected_to_die = True
    began = time.monotonic()
    harmless: dict[str, Any] = {"actions": {"work": 1.0}, "max_attempts": MAX_ATTEMPTS, "seconds": 0.1}
    harness.producer(channels=HARMLESS, per_second=20.0, **harmless)
    harness.producer(channels=["poisoned"], per_second=5.0, **harmless)
    harness.until(lambda: not harness.idle_since(began), 30, "every producer and worker to start")
    poisoned_at = time.monotonic()
    poisons = {
        harness.create("poisoned", do, seconds=seconds, max_attempts=MAX_ATTEMPTS): do
        for do, seconds in POISONS.items()
    }
    harness.pause(run.seconds)
    harness.require_flow(10, "tenants without poison", since=poisoned_at, workers=workers, channels=HARMLESS)
    account = harness.finish(harness.rules_with(may_be_buried=frozenset(POISONS)), drain_s=150)

    starts = Counter(one.uid for one in entries_of(workers) if one.event is Event.STARTED)
    run.say("poison was started: " + ", ".join(f"{do} {starts[uid]} times" for uid, do in poisons.items()))
    for uid, do in poisons.items():
        if starts[uid] > MAX_STARTS:
            account.problems.append(
                f"poison {do!r} was started {starts[uid]} times; allowed are {MAX_STARTS}"
            )
    if account.states[State.BURIED] != len(poisons):
        account.problems.append(
            f"{account.states[State.BURIED]} messages were buried; expected were the {len(poisons)} poisons"
        )
    return account


SCENARIO = Scenario("poison", "messages that kill or block their process, among harmless ones", 30, execute)
