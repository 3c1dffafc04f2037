"""`lonnymq pipeline follow` is killed at every step, and loses its database: the lake stays exact."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from lonnymq import Queue
from lonnymq.embedded import EmbeddedServer
from tests.pipeline.test_follow import work
from tests.spark.conftest import ROOT, subprocess_environment
from tests.spark.killing import kill_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(1800)]

# The line after which a process is killed, and how many seconds later: in the middle of the step.
KILLS = (
    ("batch", 0.0),
    ("windows", 1.5),
    ("reasons", 0.3),
    ("fairness", 0.3),
    ("forecast", 0.5),
    ("round 1", 0.0),
)


def rows_of(frame: Any) -> list[Any]:
    return sorted(map(tuple, frame.drop("share", "entitled_share", "blame_ms").collect()), key=repr)


@contextmanager
def following(dsn: str, lake: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run the command; at the end, kill what is left of it."""
    command = [sys.executable, "-m", "lonnymq", "pipeline", "follow", "--lake", str(lake), "--dsn", dsn]
    process = subprocess.Popen(
        [*command, "--interval", "0", "--window", "1h"],
        env=subprocess_environment(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_session(process.pid)
        process.communicate(timeout=60)


def wait_for(process: "subprocess.Popen[str]", begin: str) -> str:
    """Return the next line of progress that begins like this."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith(begin):
            return line
    raise AssertionError("".join(seen))


def test_a_killed_follower_continues_and_misses_nothing(
    spark: "SparkSession", own_server: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    from lonnymq.pipeline.lake import Batch
    from lonnymq.pipeline.steps import Lake, analyse

    server, path, number = own_server(), tmp_path / "lake", count()
    with Queue(server.dsn) as queue:
        queue.install()
        queue.set(history="metadata")
        for begin, delay_s in KILLS:
            work(queue, f"tenant-{next(number)}", 20)
            with following(server.dsn, path) as process:
                wait_for(process, begin)
                time.sleep(delay_s)
        work(queue, f"tenant-{next(number)}", 20)
        with following(server.dsn, path) as process:
            wait_for(process, "round 1:")
            server.restart()
            work(queue, f"tenant-{next(number)}", 20)
            while "attempts archived: 20" not in wait_for(process, "round"):
                pass
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            assert process.wait(60) == 0
            assert " archived in " in process.stdout.read()
    lake, full = Lake(str(path)), Lake(str(tmp_path / "full"))
    with psycopg.connect(server.dsn) as connection:
        expected = [id_ for (id_,) in connection.execute("select id from lonnymq.history order by id")]
    assert len(expected) == 20 * next(number)
    assert sorted(row.id for row in lake.attempts.read(spark).select("id").collect()) == expected
    full.policies.append(lake.policies.read(spark), Batch("w", 0))
    full.attempts.append(lake.attempts.read(spark), Batch("w", 0))
    analyse(spark, lake, window_s=3600)
    analyse(spark, full, window_s=3600)
    found, computed = (
        [rows_of(table.read(spark)) for table in (one.windows(3600), one.fairness(3600), one.reasons)]
        for one in (lake, full)
    )
    assert found == computed
