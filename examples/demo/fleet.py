"""The worker processes, started by `lonnymq work`, one of which is killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from examples.demo.tenants import PROCESSES

ROOT = Path(__file__).parents[2]


class Fleet:
    """`lonnymq work`, whose supervisor replaces a process that dies."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.exit_code: int | None = None

    def __enter__(self) -> "Fleet":
        # The log has a line for each buried message, so it is printed only if the workers fail.
        self._log = tempfile.TemporaryFile("w+")
        command = [sys.executable, "-m", "lonnymq", "work", "examples.demo.app:worker"]
        self._process = subprocess.Popen(
            [*command, "--processes", str(PROCESSES), "--log-level", "error"],
            cwd=ROOT,
            env={**os.environ, "LONNYMQ_DSN": self._dsn},
            stderr=self._log,
        )
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        try:
            self.exit_code = self._process.wait(timeout=15)
        finally:
            self._process.kill()
            self._log.seek(0)
            if self.exit_code != 0:
                print(self._log.read(), file=sys.stderr)
            self._log.close()

    def kill_one(self) -> set[int]:
        """Kill a worker process while it holds messages, and return their ids."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            for _ in range(200):
                leases = connection.execute("select worker from lonnymq.lease_status limit 1").fetchone()
                pid = int(leases[0].split(":")[-2]) if leases else 0
                held = _stop_process(connection, pid) if pid else set()
                if held:
                    os.kill(pid, signal.SIGKILL)
                    return held
                time.sleep(0.01)
        return set()


def _stop_process(connection: psycopg.Connection[tuple[object, ...]], pid: int) -> set[int]:
    """Stop the process by SIGSTOP, and return the messages it holds; if it holds none, continue it."""
    os.kill(pid, signal.SIGSTOP)
    # Meanwhile the server finishes the calls that the process has sent.
    time.sleep(0.2)
    rows = connection.execute(
        "select message_id from lonnymq.lease_status where split_part(worker, ':', -2) = %s", [str(pid)]
    )
    held = {int(str(message_id)) for (message_id,) in rows}
    if not held:
        os.kill(pid, signal.SIGCONT)
    return held
