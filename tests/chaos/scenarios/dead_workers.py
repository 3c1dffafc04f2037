"""Workers are killed while their leases last for longer than the scenario."""

import signal
import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario

LEASE_S = 3_600.0
PAUSE_S = 2.0


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn)
    began = time.monotonic()
    for _ in range(3):
        harness.worker(lease_s=LEASE_S).is_expected_to_die = True
    for _ in range(2):
        harness.producer()
    harness.until(lambda: not harness.idle_since(began), 30, "every producer and worker to start")
    kills = 0
    began = time.monotonic()
    while time.monotonic() < began + run.seconds:
        # Sometimes all of them, as if their machine had failed.
        for worker in run.random.sample(harness.workers, run.random.choice((1, 1, 2, 3))):
            worker.send(signal.SIGKILL)
            kills += 1
        harness.pause(run.random.uniform(0.5, 1.5) * PAUSE_S)
    run.say(f"{kills} workers were killed; their leases would have lasted for {LEASE_S:.0f} s")
    harness.require_recovery(time.monotonic(), "the last kill", within_s=10)
    # The channels with a limit stand still until the leases of the dead have ended.
    harness.require_flow(
        10, "meanwhile", since=began, workers=harness.workers, channels=["capped 1", "capped 3"]
    )
    return harness.finish()


SCENARIO = Scenario("dead-workers", "kill workers whose leases last for an hour", 30, execute)
