"""Restarts of the database and failures of the network under a running worker."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lonnymq import ExitCode, NewMessage, Queue
from lonnymq.embedded import EmbeddedServer
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.worker.conftest import StartWorker
from tests.worker.workers import WorkerProcess, eventually

pytestmark = pytest.mark.fault
OUTAGE_S = 6.0


def enqueue(queue: Queue, count: int, seconds: float | list[float] = 0.0) -> list[int]:
    created = queue.enqueue_many(
        [NewMessage(channel="a", payload={"do": "sleep", "seconds": seconds}) for _ in range(count)]
    )
    return [one.id for one in created if one.id is not None]


def test_a_worker_survives_network_failures(dsn: str, queue: Queue, start_worker: StartWorker) -> None:
    with Proxy(dsn) as proxy:
        worker = start_worker(to=proxy.dsn, lease_s=1.5, call_timeout_s=1.0)
        worker.wait_for_ids("end", enqueue(queue, 5))

        proxy.reset_connections()
        worker.wait_for_ids("end", enqueue(queue, 5))

        # The connections hang. After a lease without an answer the lease counts as lost, and the handler is
        # cancelled.
        ids = enqueue(queue, 1, seconds=[60, 0])
        worker.wait_for_ids("begin", ids)
        proxy.stall()
        worker.wait_for_ids("cancelled", ids)
        proxy.abandon_open_connections()
        worker.wait_for_ids("end", ids)
        last = worker.events("begin")[-1]
        assert last["id"] in ids
        assert last["suspicion"] == 1

        eventually(lambda: queue.status().leased == 0)
        # A connection that hangs does not keep the worker from stopping.
        proxy.stall()
        assert worker.stop() == ExitCode.FINISHED
    assert queue.status().waiting == 0
    assert "Traceback" not in worker.log_text()


def test_a_worker_that_starts_in_an_outage_recovers_within_seconds(
    dsn: str, queue: Queue, start_worker: StartWorker
) -> None:
    with Proxy(dsn) as proxy:
        proxy.refuse_connections()
        worker = start_worker(to=proxy.dsn)
        eventually(lambda: proxy.refused_at, "the worker tries to connect")
        for _ in range(2):
            ids = enqueue(queue, 1)
            proxy.refused_at.clear()
            time.sleep(OUTAGE_S)
            proxy.accept_connections()
            began = time.monotonic()
            worker.wait_for_ids("end", ids)
            assert time.monotonic() - began < 5.0
            refused_at = proxy.refused_at
            pauses = [after - before for before, after in pairwise(refused_at)]
            assert max(pauses) < 3.0
            eventually(lambda: queue.status().leased == 0)
            proxy.refuse_connections()
        # An outage does not keep the worker from stopping either.
        assert worker.stop() == ExitCode.FINISHED
    log_text = worker.log_text()
    assert "Traceback" not in log_text
    assert log_text.index("no connection to") < log_text.index("again after") < log_text.index("working as")
    # The client logs two lines per outage, however often it tries; the last outage may have just begun.
    assert log_text.count("lonnymq.client connected to") == 2
    assert log_text.count("lonnymq.client no connection to") in (2, 3)
    assert "psycopg.pool" not in log_text


def test_a_worker_that_waits_for_its_database_can_be_stopped(dsn: str, start_worker: StartWorker) -> None:
    with Proxy(dsn) as proxy:
        proxy.refuse_connections()
        worker = start_worker(to=proxy.dsn)
        eventually(lambda: proxy.refused_at, "the worker tries to connect")
        began = time.monotonic()
        assert worker.stop() == ExitCode.FINISHED
        assert time.monotonic() - began < 5.0
    assert "working as" not in worker.log_text()


def test_a_worker_stops_if_the_schema_is_too_new_for_it(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    comment = connect().execute("select obj_description('migration'::regclass)").fetchone()
    connect().execute("comment on table migration is 'lonnymq later 99 99'")
    worker = start_worker()
    assert worker.wait_for_exit() == ExitCode.UNUSABLE
    assert "upgrade lonnymq" in worker.log_text()
    assert "working as" not in worker.log_text()
    connect().execute(sql.SQL("comment on table migration is {}").format(*(comment or ())))


def test_a_worker_survives_restarts_of_its_database(
    own_server: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    server = own_server(fsync=False)
    queue = Queue(server.dsn)
    queue.install()
    worker = WorkerProcess(server.dsn, tmp_path / "worker.log", "on_loop", concurrency=4, lease_s=30)
    try:
        # One handler runs through both: its lease outlasts them, and its acknowledgement is sent afterwards.
        long = enqueue(queue, 1, seconds=3)
        worker.wait_for_ids("begin", long)
        server.restart()
        worker.wait_for_ids("end", enqueue(queue, 5))
        # A server that is killed before it has their acknowledgements would deliver them again.
        eventually(lambda: queue.status().leased == 1)
        server.kill()
        server.start()
        worker.wait_for_ids("end", [*long, *enqueue(queue, 5)])
        eventually(lambda: queue.status().leased == 0)
        assert worker.stop() == ExitCode.FINISHED
        assert [event["attempt"] for event in worker.events("begin") if event["id"] in long] == [1]
        assert len(set(worker.ids("end"))) == len(worker.ids("end")) == 11
        assert "Traceback" not in worker.log_text()
        assert queue.status().waiting == 0
        assert queue.check() == []
    finally:
        worker.kill()
        queue.close()


def test_an_unreachable_synchronous_standby_costs_no_leases(
    own_server: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    """Only acknowledgements wait for the standby; dequeues and heartbeats do not, and handlers run once."""
    server = own_server(fsync=False)
    queue = Queue(server.dsn)
    queue.install()
    worker = WorkerProcess(
        server.dsn, tmp_path / "worker.log", "on_loop", concurrency=2, lease_s=1.5, call_timeout_s=30
    )
    try:
        ids = enqueue(queue, 2, seconds=5)
        worker.wait_for_ids("begin", ids)
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = 'nobody'")
            admin.execute("select pg_reload_conf()")
            worker.wait_for_ids("end", ids)
            leases = admin.execute("select count(*) from lonnymq.lease").fetchone()
            assert leases == (2,), "the acknowledgements wait for the standby"
            admin.execute("alter system reset synchronous_standby_names")
            admin.execute("select pg_reload_conf()")
        eventually(lambda: queue.status().leased == 0)
        assert sorted(worker.ids("begin")) == ids
        assert worker.stop() == ExitCode.FINISHED
    finally:
        worker.kill()
        queue.close()
