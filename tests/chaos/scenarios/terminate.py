"""Random sessions of producers and workers are terminated, many per second."""

import time

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.evidence import connect
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario

PAUSE_S = 0.1
SESSIONS = "select pid from pg_stat_activity where application_name like 'lonnymq%' order by pid"


def execute(run: Run) -> Account:
    server = servers.start(run)
    harness = Harness(run, server.dsn)
    harness.start_default_members()
    began = time.monotonic()
    terminated = 0
    with connect(server.dsn) as connection:
        while time.monotonic() < began + run.seconds:
            pids = [row[0] for row in connection.execute(SESSIONS)]
            for pid in run.random.sample(pids, min(len(pids), run.random.choice((1, 1, 2, 4)))):
                connection.execute("select pg_terminate_backend(%s)", [pid])
                terminated += 1
            harness.pause(PAUSE_S)
    run.say(f"{terminated} sessions were terminated, {terminated / run.seconds:.0f} per second")
    harness.require_flow(10, "during the storm", since=began, workers=harness.workers)
    harness.require_recovery(time.monotonic(), "the storm")
    return harness.finish()


SCENARIO = Scenario("terminate-storm", "terminate random sessions, many per second", 20, execute)
