"""Producer and worker processes, restarted when they die, as a service manager would do."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.chaos import ledger
from tests.chaos.ledger import Entry

ROOT = Path(__file__).resolve().parents[2]
# Like the pause of a service manager before a restart.
RESTART_S = 0.5
STOP_S = 45.0


class Member:
    """A process that is restarted when it dies; `module` is tests.chaos.producer or tests.chaos.worker."""

    def __init__(self, name: str, module: str, arguments: dict[str, Any], directory: Path) -> None:
        self.name = name
        self.is_worker = module.endswith("worker")
        self.ledger = directory / f"{name}.ledger"
        self.log = directory / f"{name}.log"
        self._command = [sys.executable, "-m", module, json.dumps({**arguments, "ledger": str(self.ledger)})]
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at: float | None = 0.0
        self.is_expected_to_die = False
        self.deaths: list[int] = []
        self.problems: list[str] = []
        self.restart_if_dead()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def restart_if_dead(self) -> None:
        """Note whether the process has died, and restart it after a pause."""
        if self._process is not None and (code := self._process.poll()) is not None:
            self._close()
            self.deaths.append(code)
            if not self.is_expected_to_die:
                self.problems.append(
                    f"{self.name} exited unexpectedly with code {code}: {self.last_log_line()}"
                )
            self._start_at = time.monotonic() + RESTART_S
        if self._process is None and self._start_at is not None and time.monotonic() >= self._start_at:
            with self.log.open("ab") as log:
                # In its own session: Ctrl-C reaches only the harness, and the group can be killed at once.
                self._process = subprocess.Popen(
                    self._command,
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process if it is running."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Stop the process by SIGTERM; if it does not exit in time, kill it and report a problem."""
        self._start_at = None
        if self._process is None:
            return
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{self.name} did not stop within {timeout_s:.0f} s: {self.last_log_line()}")
            self.kill()
            return
        if code != 0 and not self.is_expected_to_die:
            self.problems.append(
                f"{self.name} exited with code {code} when asked to stop: {self.last_log_line()}"
            )
        self.kill()

    def kill(self) -> None:
        """Kill the process and all its children, without restarting it."""
        self._start_at = None
        if self._process is not None:
            # The process group exists as long as it has a member.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._close()

    def entries(self) -> Iterator[Entry]:
        """Yield the ledger entries of the process and its predecessors."""
        return ledger.read(self.ledger)

    def last_log_line(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return lines[-1][:300] if lines else "(the log is empty)"

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
