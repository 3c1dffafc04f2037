"""Messages that kill or block their worker's process, among innocents of several tenants.

One worker is a single process that a service manager starts again, the other has two processes of its own.
"""

import time
from collections import Counter
from typing import Any

from tests.chaos import servers
from tests.chaos.account import Account, State
from tests.chaos.ledger import Event
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage, entries_of

MAX_ATTEMPTS = 5
# An attempt that ends with its process may be repeated once or twice before the queue knows of it.
MOST_STARTS = MAX_ATTEMPTS + 2
LEASE_S = 2
INNOCENT = ["tenant 1", "tenant 2", "tenant 3"]
POISONS = {"exit": 0.0, "kill": 0.0, "block": 3 * LEASE_S}


def play(run: Run) -> Account:
    server = servers.start(run)
    stage = Stage(run, server.dsn, caps={})
    workers = [
        stage.worker(lease_s=LEASE_S, concurrency=8),
        stage.worker(lease_s=LEASE_S, concurrency=8, processes=2),
    ]
    for worker in workers:
        worker.is_expected_to_die = True
    began = time.monotonic()
    innocents: dict[str, Any] = {"wishes": {"work": 1.0}, "max_attempts": MAX_ATTEMPTS, "seconds": 0.1}
    stage.producer(channels=INNOCENT, per_second=20.0, **innocents)
    stage.producer(channels=["poisoned"], per_second=5.0, **innocents)
    stage.until(lambda: not stage.idle_since(began), 30, "every producer and worker to begin")
    poisoned_at = time.monotonic()
    poisons = {
        stage.create("poisoned", do, seconds=seconds, max_attempts=MAX_ATTEMPTS): do
        for do, seconds in POISONS.items()
    }
    stage.pause(run.seconds)
    stage.require_flow(10, "tenants without poison", since=poisoned_at, workers=workers, channels=INNOCENT)
    account = stage.settle(stage.allow(may_be_buried=frozenset(POISONS)), drain_s=150)

    starts = Counter(one.uid for one in entries_of(workers) if one.event is Event.STARTED)
    run.say("poison was started: " + ", ".join(f"{do} {starts[uid]} times" for uid, do in poisons.items()))
    for uid, do in poisons.items():
        if starts[uid] > MOST_STARTS:
            account.problems.append(f"the poison {do!r} was started {starts[uid]} times, not {MOST_STARTS}")
    if account.states[State.BURIED] != len(poisons):
        account.problems.append(
            f"{account.states[State.BURIED]} messages are buried, not the {len(poisons)} poisons"
        )
    return account


SCENARIO = Scenario("poison", "messages that kill or block their process, among innocents", 30, play)
