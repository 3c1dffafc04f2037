"""The server's clock is stepped by an hour, forward and back, while everybody works.

After a step back, retries from before it are due in an hour; everything else must flow. The last step is
forward, past every time that was seen, so that all of them are due in the end.
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
from tests.chaos.run import Run, Scenario, Skip
from tests.chaos.stage import Stage

LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")
HOUR_S = 3600
STEPS_S = (HOUR_S, 0, -HOUR_S, 2 * HOUR_S)
# How long the library trusts an offset that it has read.
CACHE_S = 1


def play(run: Run) -> Account:
    offset = run.directory / "offset"
    step(offset, 0)
    with faked_clock(offset):
        server = servers.start(run)
    require_faked(server, offset)
    stage = Stage(run, server.dsn)
    stage.usual_cast()
    for seconds in STEPS_S:
        step(offset, seconds)
        run.say(f"the server's clock is {seconds / HOUR_S:+g} h off")
        time.sleep(2 * CACHE_S)
        stage.require_recovery(time.monotonic(), f"a step to {seconds / HOUR_S:+g} h")
        stage.pause(run.seconds / len(STEPS_S))
    return stage.settle(stage.allow(is_clock_steady=False))


def step(offset: Path, seconds: int) -> None:
    """Set the clock; by a rename, so that nobody reads half a number."""
    fresh = offset.with_suffix(".fresh")
    fresh.write_text(f"{seconds:+d}\n")
    fresh.chmod(0o644)
    fresh.rename(offset)


@contextmanager
def faked_clock(offset: Path) -> Iterator[None]:
    """Servers that are started inside take their time from the file."""
    found = [path for pattern in LIBRARIES for path in Path("/").glob(pattern.lstrip("/"))]
    if not found:
        raise Skip("needs libfaketime, for example: apt-get install faketime")
    variables = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": str(CACHE_S),
        # Waits are not to be stepped, only the time of day.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    before, inherited = dict(os.environ), environment.INHERITED
    os.environ.update(variables)
    # A server inherits few variables.
    environment.INHERITED = (*inherited, *variables)
    try:
        yield
    finally:
        environment.INHERITED = inherited
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def require_faked(server: EmbeddedServer, offset: Path) -> None:
    """Prove that the server's clock follows the file."""
    step(offset, 10 * HOUR_S)
    time.sleep(2 * CACHE_S)
    with connect(server.dsn) as connection:
        row = connection.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
    step(offset, 0)
    time.sleep(2 * CACHE_S)
    if row is None or row[0] - time.time() < 9 * HOUR_S:
        raise Skip("needs a PostgreSQL whose clock libfaketime can set, and this one's does not move")


SCENARIO = Scenario("clock-steps", "the server's clock steps by hours, forward and back", 30, play)
