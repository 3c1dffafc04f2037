"""PgBouncer is killed and started again, twice at once and once after a while."""

import time
from functools import partial
from typing import Any

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.bouncer import Bouncer
from tests.chaos.run import Run, Scenario
from tests.chaos.stage import Stage

CLIENT: dict[str, dict[str, Any]] = {
    "transaction": {"listen": False, "prepare_threshold": None, "poll_s": 0.1},
    "session": {},
}


def play(run: Run, *, mode: str) -> Account:
    server = servers.start(run)
    bouncer = Bouncer(run, server, mode)
    stage = Stage(run, server.dsn)
    stage.usual_cast(dsn=bouncer.dsn, **CLIENT[mode])
    for outage_s in (0.0, 0.0, run.seconds / 4):
        stage.pause(run.seconds / 4)
        bouncer.kill()
        stage.pause(outage_s)
        bouncer.start()
        stage.require_recovery(time.monotonic(), f"{outage_s:.0f} s without PgBouncer")
    return stage.settle()


SCENARIOS = [
    Scenario(f"pgbouncer-{mode}", f"kill PgBouncer in {mode} mode", 20, partial(play, mode=mode))
    for mode in CLIENT
]
