"""Producers and workers as processes: started, watched, started again as a service manager would, ended."""

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
# A service manager waits a little before it starts a process again.
RESTART_S = 0.5
STOP_S = 45.0


class Member:
    """One process, and its successors after its death; `module` is tests.chaos.producer or .worker."""

    def __init__(self, name: str, module: str, order: dict[str, Any], directory: Path) -> None:
        self.name = name
        self.is_worker = module.endswith("worker")
        self.ledger = directory / f"{name}.ledger"
        self.log = directory / f"{name}.log"
        self._command = [sys.executable, "-m", module, json.dumps({**order, "ledger": str(self.ledger)})]
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at: float | None = 0.0
        self.is_expected_to_die = False
        self.deaths: list[int] = []
        self.problems: list[str] = []
        self.tend()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def tend(self) -> None:
        """Notice a death, and start a successor when it is time."""
        if self._process is not None and (code := self._process.poll()) is not None:
            self._close()
            self.deaths.append(code)
            if not self.is_expected_to_die:
                self.problems.append(f"{self.name} ended with {code} unasked: {self.last_words()}")
            self._start_at = time.monotonic() + RESTART_S
        if self._process is None and self._start_at is not None and time.monotonic() >= self._start_at:
            with self.log.open("ab") as log:
                # A session of its own: Ctrl-C is for the harness, and the whole group can be ended at once.
                self._process = subprocess.Popen(
                    self._command,
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def send(self, number: signal.Signals) -> None:
        """Signal the process if it lives."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Ask it to stop; if it does not, say so and kill it."""
        self._start_at = None
        if self._process is None:
            return
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            code = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{self.name} did not stop within {patience_s:.0f} s: {self.last_words()}")
            self.kill()
            return
        if code != 0 and not self.is_expected_to_die:
            self.problems.append(f"{self.name} ended with {code} when asked to stop: {self.last_words()}")
        self.kill()

    def kill(self) -> None:
        """End it with all its children, for good."""
        self._start_at = None
        if self._process is not None:
            # Its group outlives it as long as it has children.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._close()

    def entries(self) -> Iterator[Entry]:
        """Yield what it and its predecessors have written down."""
        return ledger.read(self.ledger)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return lines[-1][:300] if lines else "(it logged nothing)"

    def _close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
