"""The server's clock steps forward and back by hours while messages are produced and handled.

After a step back, earlier retries are due only in an hour; everything else must flow. The last step goes
forward past all earlier times, so that all retries are due in the end.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lonnymq.embedded import EmbeddedServer, environment
from tests.chaos import servers
from tests.chaos.account import Account
from tests.chaos.evidence import connect
from tests.chaos.harness import Harness
from tests.chaos.run import Run, Scenario, Skip

LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")
HOUR_S = 3600
STEPS_S = (HOUR_S, 0, -HOUR_S, 2 * HOUR_S)
# How long libfaketime caches an offset that it has read.
CACHE_S = 1


def execute(run: Run) -> Account:
    offset = run.directory / "offset"
    set_offset(offset, 0)
    with use_fake_clock(offset):
        server = servers.start(run)
    require_fake_clock(server, offset)
    harness = Harness(run, server.dsn)
    harness.start_default_members()
    for seconds in STEPS_S:
        set_offset(offset, seconds)
        run.say(f"the server's clock is off by {seconds / HOUR_S:+g} h")
        time.sleep(2 * CACHE_S)
        harness.require_recovery(time.monotonic(), f"a step to {seconds / HOUR_S:+g} h")
        harness.pause(run.seconds / len(STEPS_S))
    return harness.finish(harness.rules_with(is_clock_steady=False))


def set_offset(offset: Path, seconds: int) -> None:
    """Set the server's clock; the file is renamed into place, so that nobody reads half a number."""
    fresh = offset.with_suffix(".fresh")
    fresh.write_text(f"{seconds:+d}\n")
    fresh.chmod(0o644)
    fresh.rename(offset)


@contextmanager
def use_fake_clock(offset: Path) -> Iterator[None]:
    """Make servers that are started inside this block take their time from the file."""
    found = [path for pattern in LIBRARIES for path in Path("/").glob(pattern.lstrip("/"))]
    if not found:
        raise Skip("needs libfaketime, for example: apt-get install faketime")
    variables = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": str(CACHE_S),
        # Step only the time of day, not the clock that times waits.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    before, inherited = dict(os.environ), environment.INHERITED
    os.environ.update(variables)
    # The embedded server inherits only these variables.
    environment.INHERITED = (*inherited, *variables)
    try:
        yield
    finally:
        environment.INHERITED = inherited
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def require_fake_clock(server: EmbeddedServer, offset: Path) -> None:
    """Skip the scenario unless the server's clock follows the file."""
    set_offset(offset, 10 * HOUR_S)
    time.sleep(2 * CACHE_S)
    with connect(server.dsn) as connection:
        row = connection.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
    set_offset(offset, 0)
    time.sleep(2 * CACHE_S)
    if row is None or row[0] - time.time() < 9 * HOUR_S:
        raise Skip("needs a PostgreSQL whose clock libfaketime can set, and this one's did not change")


SCENARIO = Scenario("clock-steps", "the server's clock steps by hours, forward and back", 30, execute)
