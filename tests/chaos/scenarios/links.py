"""One worker's link is slow, stalls and breaks, while another worker's is healthy."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.harness import CHANNELS, LEASE_S, Harness
from tests.chaos.run import Run, Scenario
from tests.proxy import Proxy

BYTES_PER_S = 200_000
SIZE = 30_000
RESETS = 5


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn)
    link = run.cleanup.enter_context(Proxy(server.dsn))
    healthy = harness.worker(name="healthy")
    slow = harness.worker(name="slow", dsn=link.dsn)
    began = time.monotonic()
    harness.producer()
    harness.producer(channels=[*CHANNELS, "heavy"], size=SIZE, per_second=10.0)
    harness.until(lambda: not harness.idle_since(began), 30, "every producer and worker to start")

    faults_since = time.monotonic()
    link.bytes_per_s = BYTES_PER_S
    run.say(f"one link is limited to {BYTES_PER_S // 1000} kB/s")
    harness.pause(run.seconds / 3)
    if harness.idle_since(faults_since, [slow]):
        harness.problem("the worker behind the slow link has finished nothing")

    stall_s = max(2 * LEASE_S, run.seconds / 3)
    link.stall()
    run.say(f"the link stalls for {stall_s:.0f} s, longer than a lease")
    harness.pause(stall_s)
    link.bytes_per_s = None
    link.resume()
    harness.require_recovery(time.monotonic(), "the stall")

    for _ in range(RESETS):
        link.reset_connections()
        harness.pause(run.seconds / 3 / RESETS)
    harness.require_recovery(time.monotonic(), f"{RESETS} connection resets")
    harness.require_flow(5, "the healthy worker", since=faults_since, workers=[healthy])
    return harness.finish()


SCENARIO = Scenario("links", "the link of one of two workers is slow, stalls and breaks", 30, execute)
