"""A running fleet of several releases."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 200.0

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Releases:
    """The folders of three releases (see next_version)."""

    released: Path
    later: Path
    third: Path


def run(release: Path, dsn: str, code: str) -> str:
    """Run code of a release, in which `queue` is the queue, and return what it prints."""
    code = f"import sys, lonnymq\nqueue = lonnymq.Queue({dsn!r})\n{code}"
    environment = os.environ | {"PYTHONPATH": str(release)}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def schema_state(release: Path, dsn: str) -> str:
    return run(release, dsn, "print(queue.schema_status().state)")


class Fleet:
    """Processes of two releases on one queue."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self.logs: list[Path] = []
        self._folder = folder
        self._processes: dict[Process, Path] = {}

    def start(self, release: Path, role: str) -> Process:
        log = self._folder / f"{len(self.logs)}-{role}"
        log.touch()
        self.logs.append(log)
        command = [sys.executable, "-m", "tests.migration.member", str(release), role, self.dsn, str(log)]
        with log.with_suffix(".stderr").open("wb") as stderr:
            process = subprocess.Popen(command, cwd=ROOT, stderr=stderr)
        self._processes[process] = log
        return process

    def count(self, process: Process) -> int:
        """Return how many messages a process has recorded, and make sure that no process has failed."""
        for one, log in self._processes.items():
            assert one.poll() in (None, 0), log.with_suffix(".stderr").read_text()
        return len(self._processes[process].read_text().splitlines())

    def wait_for_progress(self, *processes: Process, by: int = 20) -> None:
        before = {one: self.count(one) for one in processes}
        eventually(
            lambda: all(self.count(one) >= before[one] + by for one in processes), "each process goes on"
        )

    def stop(self, *processes: Process) -> None:
        """Stop producers and workers as an operator would; they must not fail."""
        for one in processes:
            Path(f"{self._processes[one]}.stop").touch()
            if "worker" in self._processes[one].name:
                one.terminate()
        for one in processes:
            assert one.wait(TIMEOUT_S) == 0, self._processes[one].with_suffix(".stderr").read_text()

    def ids(self, *roles: str) -> list[str]:
        return [
            line
            for log in self.logs
            for line in log.read_text().splitlines()
            if log.name.split("-")[1] in roles
        ]

    def complaints(self) -> str:
        """Return what processes have logged, at the level WARNING or above."""
        text = "".join(log.with_suffix(".stderr").read_text() for log in self.logs)
        # A machine that is busy.
        return "".join(line for line in text.splitlines(True) if "giving back messages" not in line)

    def kill(self) -> None:
        for one in self._processes:
            if one.poll() is None:
                one.kill()
                one.wait()


def eventually(condition: Callable[[], Any], what: str) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < until, f"timed out waiting until {what}"
        time.sleep(0.05)
