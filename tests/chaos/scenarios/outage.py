"""The server goes away and comes back: cleanly, by a crash, at once, and after a while."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage


def play(run: Run) -> Account:
    server = servers.start(run, fsync=True)
    stage = Stage(run, server.dsn)
    stage.usual_cast()
    pause_s = run.seconds / 6
    stage.pause(pause_s)

    server.restart()
    stage.require_recovery(time.monotonic(), "a fast shutdown and restart")
    stage.pause(pause_s)

    server.kill("immediate")
    server.start()
    stage.require_recovery(time.monotonic(), "an immediate shutdown")
    stage.pause(pause_s)

    server.kill("sigkill")
    server.start()
    stage.require_recovery(time.monotonic(), "a crash")
    stage.pause(pause_s)

    server.kill("immediate")
    stage.pause(2 * pause_s)
    server.start()
    stage.require_recovery(time.monotonic(), f"an outage of {2 * pause_s:.0f} s")
    stage.pause(pause_s)
    return stage.settle()


SCENARIO = Scenario("outage", "restart, crash and longer outage of the server", 40, play)
