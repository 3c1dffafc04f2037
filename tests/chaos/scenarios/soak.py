"""Producers and workers are killed, stopped and continued at random."""

import signal
import time
from typing import TYPE_CHECKING

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.harness import LEASE_S, Harness
from tests.chaos.run import Run, Scenario

if TYPE_CHECKING:
    from tests.chaos.members import Member

# The longest stop lasts for two leases.
MAX_STOP_S = 2 * LEASE_S


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn)
    began = time.monotonic()
    for _ in range(3):
        harness.worker()
    for _ in range(2):
        harness.producer()
    for member in harness.members:
        member.is_expected_to_die = True
    harness.until(lambda: not harness.idle_since(began), 30, "every producer and worker to start")
    stopped: dict[Member, float] = {}
    kills = stops = 0
    began = time.monotonic()
    while time.monotonic() < began + run.seconds:
        now = time.monotonic()
        for member in [one for one, until in stopped.items() if until <= now]:
            del stopped[member]
            member.send(signal.SIGCONT)
        member = run.random.choice(harness.members)
        if member not in stopped:
            if run.random.random() < 0.5:
                member.send(signal.SIGKILL)
                kills += 1
            else:
                member.send(signal.SIGSTOP)
                stopped[member] = now + run.random.uniform(0.1, MAX_STOP_S)
                stops += 1
        harness.pause(run.random.uniform(0.2, 1.5))
    for member in stopped:
        member.send(signal.SIGCONT)
    run.say(f"{kills} processes were killed, {stops} were stopped for up to {MAX_STOP_S:.0f} s")
    harness.require_recovery(time.monotonic(), "the last kill", within_s=10)
    return harness.finish()


SCENARIO = Scenario("soak", "kill, stop and continue producers and workers at random", 30, execute)
