"""Worker processes that end with their test, even if it fails."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.workers import WorkerProcess

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def start_worker(dsn: str, tmp_path: Path) -> Iterator[StartWorker]:
    """A function that starts worker processes on the test's queue."""
    started: list[WorkerProcess] = []

    def start_worker(program: str = "on_loop", *, to: str | None = None, **settings: Any) -> WorkerProcess:
        log = tmp_path / f"worker-{len(started)}.log"
        settings = {"concurrency": 2, "prefetch": 0, "lease_s": 3, "call_timeout_s": 2.0, **settings}
        process = WorkerProcess(to or dsn, log, program, **settings)
        started.append(process)
        return process

    yield start_worker
    for process in started:
        process.kill()
