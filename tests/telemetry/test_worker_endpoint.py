"""What `lonnymq work --health-port` shows at /metrics, by one process and by several."""

import os
import signal
from pathlib import Path

import pytest

from lonnymq import Queue, WorkerState
from tests.telemetry.scrape import check_with_promtool, eventually, get, running, samples

PROGRAM = """
import time

import lonnymq

app = lonnymq.App()


@app.task
def resize(video: int) -> None:
    if video < 0:
        raise lonnymq.Bury("no such video")
"""
ATTEMPTS = "lonnymq_worker_attempts_total"


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_show_their_metrics_at_one_endpoint(
    queue: Queue, dsn: str, tmp_path: Path, processes: int
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    for video in (*range(20), -1):
        queue.enqueue(f"tenant {video % 3}", {"task": "resize", "arguments": {"video": video}})
    options = ("--processes", str(processes), "--health-port", "0")
    with running(dsn, "work", "shop", *options, cwd=tmp_path) as worker:

        def shown() -> dict[tuple[str, ...], float]:
            return samples(get(f"{worker.url}/metrics").text)

        eventually(lambda: shown().get(("lonnymq_worker_wait_seconds_count",)) == 21)
        eventually(lambda: shown()["lonnymq_worker_processes",] == processes)
        # Each process tells what it has counted once a second, and a new one has no slots yet.
        eventually(lambda: shown()["lonnymq_worker_slots", "free"] == 10 * processes)
        eventually(lambda: shown().get((ATTEMPTS, "buried", "resize")) == 1)
        eventually(lambda: shown().get((ATTEMPTS, "completed", "resize")) == 20)
        check_with_promtool(get(f"{worker.url}/metrics").text)
        if processes > 1:
            pids = {one.pid for one in queue.workers() if one.state is WorkerState.WORKING}
            os.kill(pids.pop(), signal.SIGKILL)
            eventually(lambda: shown()["lonnymq_worker_processes",] == 1)
            eventually(lambda: shown()["lonnymq_worker_processes",] == 2)
            assert shown()[ATTEMPTS, "completed", "resize"] == 20
        assert worker.stop(signal.SIGTERM) == 0
