"""Measures the phases of a migration beside callers: `python -m tests.migration.measure ROWS...`.

For each number of waiting messages: how long each phase takes, and the longest call of a producer, of a
worker and of a reader of a view meanwhile. The releases are those of the tests.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg

from lonnymq import Queue
from lonnymq.client.sync import migration
from lonnymq.embedded import embedded
from tests.migration import next_version

PRODUCE = "select lonnymq.message_create(p_channel => 'a', p_content => 'x')"
WORK = """
    select lonnymq.message_complete(array[d.message_id], array[d.token])
    from lonnymq.message_dequeue(1) d where d.outcome = 'leased'
"""
CALLS = {"producer": PRODUCE, "worker": WORK, "view": "select * from lonnymq.channel_status"}
FILL = """
    select count(*) from lonnymq.message_create_many(
      array(select 'c' || g % 100 from generate_series(1, {0}) g),
      array(select 'x'::bytea from generate_series(1, {0})))
"""
STEP_ROWS = 10_000


def main(counts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        released = next_version.build_wheel(Path(folder))
        later = next_version.make_next(released, Path(folder))
        for count in counts:
            with embedded(fsync=False) as server:
                run_release(released, "install", server.dsn, count)
                run_release(later, "migrate", server.dsn, count)


def run_release(release: Path, role: str, dsn: str, count: int) -> None:
    command = [sys.executable, "-m", "tests.migration.measure", f"--{role}", dsn, str(count)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(release)})


def install(dsn: str, count: int) -> None:
    with Queue(dsn) as queue, psycopg.connect(dsn, autocommit=True) as connection:
        queue.install()
        for _ in range(0, count, STEP_ROWS):
            connection.execute(FILL.format(min(count, STEP_ROWS)).encode())
        connection.execute("analyze")


def measure(dsn: str, count: int) -> None:
    callers = [Caller(dsn, name, query) for name, query in CALLS.items()]
    with Queue(dsn) as queue:
        time.sleep(1)
        for phase in queue.plan_migration():
            for one in callers:
                one.longest_s = 0
            began = time.perf_counter()
            migration._run(queue.caller, phase, 60)
            took_ms = 1000 * (time.perf_counter() - began)
            # A call that waits is counted when it ends.
            time.sleep(0.5)
            calls = ", ".join(f"{one.name} {1000 * one.longest_s:.0f} ms" for one in callers)
            name = phase.migration or "functions and views"
            print(f"{count:>9,} messages: {name}: {took_ms:.0f} ms; longest calls: {calls}", flush=True)
    for one in callers:
        one.stop()


class Caller:
    """Repeats a call in a thread, and remembers the longest."""

    def __init__(self, dsn: str, name: str, query: str) -> None:
        self.name, self.longest_s = name, 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, args=(dsn, query.encode()))
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _repeat(self, dsn: str, query: bytes) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not self._ended.is_set():
                began = time.perf_counter()
                connection.execute(query)
                self.longest_s = max(self.longest_s, time.perf_counter() - began)
                time.sleep(0.002)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--install", dsn, count]:
            install(dsn, int(count))
        case ["--migrate", dsn, count]:
            measure(dsn, int(count))
        case counts:
            main([int(one) for one in counts] or [1_000, 300_000])
