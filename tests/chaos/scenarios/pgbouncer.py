"""PgBouncer is killed and restarted, twice immediately and once after a pause."""

import time
from functools import partial
from typing import Any

from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.bouncer import Bouncer
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario

CLIENT: dict[str, dict[str, Any]] = {
    "transaction": {"listen": False, "prepare_threshold": None, "poll_s": 0.1},
    "session": {},
}


def execute(run: Run, *, mode: str) -> Account:
    server = servers.start(run)
    bouncer = Bouncer(run, server, mode)
    harness = Harness(run, server.dsn)
    harness.start_default_members(dsn=bouncer.dsn, **CLIENT[mode])
    for outage_s in (0.0, 0.0, run.seconds / 4):
        harness.pause(run.seconds / 4)
        bouncer.kill()
        harness.pause(outage_s)
        bouncer.start()
        harness.require_recovery(time.monotonic(), f"{outage_s:.0f} s without PgBouncer")
    return harness.finish()


SCENARIOS = [
    Scenario(f"pgbouncer-{mode}", f"kill PgBouncer in {mode} mode", 20, partial(execute, mode=mode))
    for mode in CLIENT
]
