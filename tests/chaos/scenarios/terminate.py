"""Sessions of producers and workers are terminated at random, many a second."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.evidence import connect
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage

PAUSE_S = 0.1
OURS = "select pid from pg_stat_activity where application_name like 'lonnymq%' order by pid"


def play(run: Run) -> Account:
    server = servers.start(run)
    stage = Stage(run, server.dsn)
    stage.usual_cast()
    began = time.monotonic()
    terminated = 0
    with connect(server.dsn) as connection:
        while time.monotonic() < began + run.seconds:
            pids = [row[0] for row in connection.execute(OURS)]
            for pid in run.random.sample(pids, min(len(pids), run.random.choice((1, 1, 2, 4)))):
                connection.execute("select pg_terminate_backend(%s)", [pid])
                terminated += 1
            stage.pause(PAUSE_S)
    run.say(f"{terminated} sessions were terminated, {terminated / run.seconds:.0f} a second")
    stage.require_flow(10, "during the storm", since=began, workers=stage.workers)
    stage.require_recovery(time.monotonic(), "the storm")
    return stage.settle()


SCENARIO = Scenario("terminate-storm", "terminate random sessions, many a second", 20, play)
