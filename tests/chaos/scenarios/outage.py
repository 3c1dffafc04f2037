"""The server stops and comes back: after a clean shutdown, a crash, and a longer outage."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario


def execute(run: Run) -> Account:
    server = servers.start(run, fsync=True)
    harness = Harness(run, server.dsn)
    harness.start_default_members()
    pause_s = run.seconds / 6
    harness.pause(pause_s)

    server.restart()
    harness.require_recovery(time.monotonic(), "a fast shutdown and restart")
    harness.pause(pause_s)

    server.kill("immediate")
    server.start()
    harness.require_recovery(time.monotonic(), "an immediate shutdown")
    harness.pause(pause_s)

    server.kill("sigkill")
    server.start()
    harness.require_recovery(time.monotonic(), "a crash")
    harness.pause(pause_s)

    server.kill("immediate")
    harness.pause(2 * pause_s)
    server.start()
    harness.require_recovery(time.monotonic(), f"an outage of {2 * pause_s:.0f} s")
    harness.pause(pause_s)
    return harness.finish()


SCENARIO = Scenario("outage", "restart, crash and longer outage of the server", 40, execute)
