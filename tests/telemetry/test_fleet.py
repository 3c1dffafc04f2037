"""The processes of a worker count together, also while some of them die, stop or hang."""

import json
import os
import signal
from pathlib import Path

from lonnymq import Queue, WorkerState
from tests.examples.pages import ROOT
from tests.forked import ForkedProgram
from tests.telemetry.scrape import TIMEOUT_S, eventually


def test_counts_of_processes_are_added_up_and_never_go_back(queue: Queue, dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "figures"
    program = ForkedProgram("tests.telemetry.fleet_program", dsn, str(file), cwd=ROOT)

    seen = 0

    def lines() -> list[dict[str, int]]:
        assert program.poll() is None
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def reach(**expected: int) -> dict[str, int]:
        """Wait for these figures, which may already have changed again since the last ones."""

        def find() -> list[int]:
            return [
                place
                for place, one in enumerate(lines())
                if place >= seen and expected.items() <= one.items()
            ]

        nonlocal seen
        seen = eventually(find)[0]
        found: dict[str, int] = lines()[seen]
        return found

    def pids() -> set[int]:
        return {one.pid for one in queue.workers() if one.state is WorkerState.WORKING}

    try:
        for _ in range(30):
            queue.enqueue("a", 0)
        reach(completed=30, processes=2, busy=0, slots=4)
        victim = eventually(pids).pop()
        os.kill(victim, signal.SIGKILL)
        # Another one is started, and what the first has counted stays.
        assert reach(processes=1)["completed"] == 30
        assert reach(processes=2)["completed"] == 30
        queue.enqueue("a", 2.5)
        reach(busy=1)
        reach(completed=31)
        # One that is stopped does not answer, and no other process waits for it.
        stopped = eventually(lambda: len(found := pids() - {victim}) == 2 and found).pop()
        os.kill(stopped, signal.SIGSTOP)
        assert reach(processes=1) == {"completed": 31, "processes": 1, "busy": 0, "slots": 2}
        os.kill(stopped, signal.SIGCONT)
        reach(processes=2)
        # Nor do workers wait for a supervisor that does not read.
        program.send_signal(signal.SIGSTOP)
        for _ in range(20):
            queue.enqueue("a", 0)
        eventually(lambda: queue.status().waiting == queue.status().leased == 0)
        program.send_signal(signal.SIGCONT)
        reach(completed=51)
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT_S) == 0
        assert json.loads(file.read_text().splitlines()[-1]) == {
            "completed": 51,
            "processes": 0,
            "busy": 0,
            "slots": 0,
        }
    finally:
        program.send_signal(signal.SIGCONT)
        program.kill()
        program.wait()
