"""Worker processes that end with their test, whatever becomes of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import server_kinds
from tests.worker.working import Process

StartWorker = Callable[..., Process]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Processes and signals take their time, and ask nothing of the server's version: one kind is enough."""
    first = server_kinds()[:1]
    spare = [item for item in items if _takes_time(item) and _kind_of(item) not in first]
    config.hook.pytest_deselected(items=spare)
    items[:] = [item for item in items if item not in spare]


def _takes_time(item: pytest.Item) -> bool:
    is_here = Path(__file__).parent in item.path.parents
    return is_here and {"start_worker", "own_server"} & set(getattr(item, "fixturenames", ())) != set()


def _kind_of(item: pytest.Item) -> object:
    return item.callspec.params.get("server_kind")  # type: ignore[attr-defined]


@pytest.fixture
def start_worker(dsn: str, tmp_path: Path) -> Iterator[StartWorker]:
    """A factory of worker processes on the test's queue."""
    started: list[Process] = []

    def start_worker(program: str = "on_loop", *, to: str | None = None, **settings: Any) -> Process:
        log = tmp_path / f"worker-{len(started)}.log"
        settings = {"concurrency": 2, "prefetch": 0, "lease_ms": 3000, "patience_s": 2.0, **settings}
        process = Process(to or dsn, log, program, **settings)
        started.append(process)
        return process

    yield start_worker
    for process in started:
        process.kill()
