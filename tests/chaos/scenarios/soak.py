"""Producers and workers are killed, stopped and continued at random, again and again."""

import signal
import time
from typing import TYPE_CHECKING

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import LEASE_S, Stage

if TYPE_CHECKING:
    from tests.chaos.members import Member

# The longest stop lasts twice as long as a lease.
MOST_STOPPED_S = 2 * LEASE_S


def play(run: Run) -> Account:
    server = servers.start(run)
    stage = Stage(run, server.dsn)
    began = time.monotonic()
    for _ in range(3):
        stage.worker()
    for _ in range(2):
        stage.producer()
    for member in stage.members:
        member.is_expected_to_die = True
    stage.until(lambda: not stage.idle_since(began), 30, "every producer and worker to begin")
    stopped: dict[Member, float] = {}
    kills = stops = 0
    began = time.monotonic()
    while time.monotonic() < began + run.seconds:
        now = time.monotonic()
        for member in [one for one, until in stopped.items() if until <= now]:
            del stopped[member]
            member.send(signal.SIGCONT)
        member = run.random.choice(stage.members)
        if member not in stopped:
            if run.random.random() < 0.5:
                member.send(signal.SIGKILL)
                kills += 1
            else:
                member.send(signal.SIGSTOP)
                stopped[member] = now + run.random.uniform(0.1, MOST_STOPPED_S)
                stops += 1
        stage.pause(run.random.uniform(0.2, 1.5))
    for member in stopped:
        member.send(signal.SIGCONT)
    run.say(f"{kills} processes were killed, {stops} were stopped for up to {MOST_STOPPED_S:.0f} s")
    stage.require_recovery(time.monotonic(), "the last kill", within_s=10)
    return stage.settle()


SCENARIO = Scenario("soak", "kill, stop and continue producers and workers at random", 30, play)
