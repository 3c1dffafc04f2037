"""Databases that restart and networks that are cut, under a running worker."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lonnymq import ExitCode, NewMessage, Queue
from lonnymq.embedded import EmbeddedServer
from tests.worker.conftest import StartWorker
from tests.worker.proxy import Proxy
from tests.worker.working import Process, eventually

pytestmark = pytest.mark.fault


def enqueue(queue: Queue, count: int, seconds: float | list[float] = 0.0) -> list[int]:
    created = queue.enqueue_many(
        [NewMessage(channel="a", payload={"do": "sleep", "seconds": seconds}) for _ in range(count)]
    )
    return [one.id for one in created if one.id is not None]


def test_a_worker_outlives_its_network(dsn: str, queue: Queue, start_worker: StartWorker) -> None:
    with Proxy(dsn) as proxy:
        worker = start_worker(to=proxy.dsn, lease_ms=1500, patience_s=1.0)
        worker.wait_for_ids("end", enqueue(queue, 5))

        proxy.reset()
        worker.wait_for_ids("end", enqueue(queue, 5))

        # Nothing is told: no answer for as long as a lease is a lost lease, and the handler is stopped.
        ids = enqueue(queue, 1, seconds=[60, 0])
        worker.wait_for_ids("begin", ids)
        proxy.hang()
        worker.wait_for_ids("cancelled", ids)
        proxy.forget()
        worker.wait_for_ids("end", ids)
        last = worker.events("begin")[-1]
        assert last["id"] in ids
        assert last["suspicion"] == 1

        eventually(lambda: queue.status().leased == 0)
        # Nor does it keep a worker from ending.
        proxy.hang()
        assert worker.stop() == ExitCode.FINISHED
    assert queue.status().waiting == 0
    assert "Traceback" not in worker.said()


def test_a_worker_outlives_its_database(own_server: Callable[..., EmbeddedServer], tmp_path: Path) -> None:
    server = own_server(fsync=False)
    queue = Queue(server.dsn)
    queue.install()
    worker = Process(server.dsn, tmp_path / "worker.log", "on_loop", concurrency=4, lease_ms=30_000)
    try:
        # One runs through both: its lease outlasts them, and its acknowledgement waits until it can be said.
        long = enqueue(queue, 1, seconds=3)
        worker.wait_for_ids("begin", long)
        server.restart()
        worker.wait_for_ids("end", enqueue(queue, 5))
        server.kill()
        server.start()
        worker.wait_for_ids("end", [*long, *enqueue(queue, 5)])
        eventually(lambda: queue.status().leased == 0)
        assert worker.stop() == ExitCode.FINISHED
        assert [event["attempt"] for event in worker.events("begin") if event["id"] in long] == [1]
        assert len(set(worker.ids("end"))) == len(worker.ids("end")) == 11
        assert "Traceback" not in worker.said()
        assert queue.status().waiting == 0
        assert queue.verify() == []
    finally:
        worker.kill()
        queue.close()
