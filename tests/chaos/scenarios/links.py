"""One worker's link is slow, stalls and breaks, while another worker is healthy."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import CHANNELS, LEASE_S, Stage
from tests.proxy import Proxy

BYTES_PER_S = 200_000
SIZE = 30_000
CUTS = 5


def play(run: Run) -> Account:
    server = servers.start(run)
    stage = Stage(run, server.dsn)
    link = run.cleanup.enter_context(Proxy(server.dsn))
    healthy = stage.worker(name="healthy")
    slow = stage.worker(name="slow", dsn=link.dsn)
    began = time.monotonic()
    stage.producer()
    stage.producer(channels=[*CHANNELS, "heavy"], size=SIZE, per_second=10.0)
    stage.until(lambda: not stage.idle_since(began), 30, "every producer and worker to begin")

    trouble_at = time.monotonic()
    link.bytes_per_s = BYTES_PER_S
    run.say(f"one link passes {BYTES_PER_S // 1000} kB/s")
    stage.pause(run.seconds / 3)
    if stage.idle_since(trouble_at, [slow]):
        stage.problem("the worker behind the slow link has finished nothing")

    stall_s = max(2 * LEASE_S, run.seconds / 3)
    link.stall()
    run.say(f"the link stalls for {stall_s:.0f} s, longer than a lease")
    stage.pause(stall_s)
    link.bytes_per_s = None
    link.resume()
    stage.require_recovery(time.monotonic(), "the stall")

    for _ in range(CUTS):
        link.reset_connections()
        stage.pause(run.seconds / 3 / CUTS)
    stage.require_recovery(time.monotonic(), f"{CUTS} cuts")
    stage.require_flow(5, "the healthy worker", since=trouble_at, workers=[healthy])
    return stage.settle()


SCENARIO = Scenario("links", "a slow, stalled and broken link of one worker, another is healthy", 30, play)
