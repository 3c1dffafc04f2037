"""A worker that dies is noticed by the others long before its leases end; one that lives keeps its leases."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import ExitCode, NewMessage, Queue
from lonnymq.embedded import EmbeddedServer
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import WorkerProcess, eventually

pytestmark = pytest.mark.fault

# No test can take so long that such a lease expires by itself.
LEASE_S = 3_600
# What a handler does that must be interrupted to end in time.
LONG_S = 3_000


def enqueue(queue: Queue, count: int, *seconds: float) -> list[int]:
    """Enqueue messages that take this long in their first attempt, their second one, and so on."""
    payload = {"do": "sleep", "seconds": list(seconds)}
    created = queue.enqueue_many([NewMessage(channel="a", payload=payload) for _ in range(count)])
    return [one.id for one in created if one.id is not None]


def registered(connection: psycopg.Connection[Any]) -> list[str]:
    return [name for (name,) in connection.execute("select name from lonnymq.worker order by registered_at")]


def pids(connection: psycopg.Connection[Any]) -> dict[str, int]:
    return dict(connection.execute("select name, pid from lonnymq.worker").fetchall())


def wait_for_workers(connection: psycopg.Connection[Any], count: int) -> None:
    eventually(lambda: len(registered(connection)) == count, f"{count} workers register")


def ended_early(workers: list[WorkerProcess]) -> list[int]:
    """Return how many leases the workers say they have ended early, a number per time."""
    logs = "".join(worker.log_text() for worker in workers)
    return [int(count) for count in re.findall(r"ended (\d+) leases? early", logs)]


def test_messages_of_a_killed_worker_run_in_others_long_before_their_leases_end(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    doomed = start_worker(concurrency=2, prefetch=4, lease_s=LEASE_S)
    ids = enqueue(queue, 6, LONG_S, 0)
    doomed.wait_for("begin", 2)
    others = [start_worker(concurrency=2, lease_s=LEASE_S) for _ in range(3)]
    wait_for_workers(connect(), 4)
    # What the doomed one has prefetched is given back, and another worker may start it for the first time.
    running = doomed.ids("begin")
    doomed.kill()
    eventually(lambda: set(running) <= {one for worker in others for one in worker.ids("end")})
    assert ended_early(others) == [2]
    for worker in others:
        worker.kill()
    last = start_worker(concurrency=8, lease_s=LEASE_S)
    eventually(lambda: queue.status().waiting == queue.status().leased == 0)
    assert set(ids) <= {one for worker in [*others, last] for one in worker.ids("end")}
    assert last.stop() == ExitCode.FINISHED


def test_a_worker_that_loses_its_session_registers_again_and_keeps_its_leases(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    database = connect()
    workers = [start_worker(concurrency=1, lease_s=LEASE_S) for _ in range(2)]
    wait_for_workers(database, 2)
    (message,) = enqueue(queue, 1, 4, 0)
    eventually(lambda: any(worker.ids("begin") for worker in workers))
    for _ in range(3):
        before = pids(database)
        database.execute("select pg_terminate_backend(pid) from worker")
        eventually(lambda before=before: not before.items() & pids(database).items())  # type: ignore[misc]
        assert before.keys() == pids(database).keys()
    eventually(lambda: any(worker.ids("end") for worker in workers))
    assert [one for worker in workers for one in worker.ids("begin")] == [message]
    assert ended_early(workers) == []
    eventually(lambda: queue.status().leased == 0)
    assert [worker.stop() for worker in workers] == [ExitCode.FINISHED] * 2
    assert "Traceback" not in "".join(worker.log_text() for worker in workers)


def test_a_stopped_worker_keeps_its_leases(queue: Queue, connect: Connect, start_worker: StartWorker) -> None:
    database = connect()
    stopped, other = (
        start_worker(concurrency=1, lease_s=LEASE_S),
        start_worker(concurrency=1, lease_s=LEASE_S),
    )
    wait_for_workers(database, 2)
    for _ in range(2):
        enqueue(queue, 1, LONG_S, 0)
        eventually(lambda: queue.status().waiting == 0)
    eventually(lambda: stopped.ids("begin") and other.ids("begin"))
    stopped.send(signal.SIGSTOP)
    database.execute("select worker_watch()")
    assert database.execute("select from worker where gone_since is not null").fetchall() == []
    # Killing it is noticed although it is stopped.
    stopped.kill()
    eventually(lambda: ended_early([other]))
    assert ended_early([other]) == [1]


def test_a_worker_that_stops_is_not_taken_for_dead(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    database = connect()
    worker = start_worker(lease_s=LEASE_S)
    wait_for_workers(database, 1)
    worker.wait_for_ids("end", enqueue(queue, 3, 0))
    assert worker.stop() == ExitCode.FINISHED
    assert registered(database) == []


def test_a_process_that_takes_over_does_not_bear_the_name_of_the_dead_one(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    """In a container that is restarted, both have the same host name and the same process id."""
    database = connect()
    worker = start_worker("on_loop", concurrency=1, lease_s=LEASE_S, processes=2, name="w")
    wait_for_workers(database, 2)
    before = registered(database)
    assert all(re.fullmatch(r"w:\d+:[0-9a-f]{16}", name) for name in before)
    (message,) = enqueue(queue, 1, LONG_S, 0)
    worker.wait_for("begin")
    os.kill(worker.events("begin")[0]["pid"], signal.SIGKILL)
    worker.wait_for_ids("end", [message])
    eventually(lambda: len(set(registered(database)) - set(before)) == 1)
    assert worker.stop() == ExitCode.FINISHED


@contextmanager
def two_workers(server: EmbeddedServer, path: Path) -> Iterator[list[WorkerProcess]]:
    with Queue(server.dsn) as queue:
        queue.install()  # first: a worker that finds no queue ends
    workers = [
        WorkerProcess(server.dsn, path / f"{n}.log", "on_loop", concurrency=1, lease_s=LEASE_S)
        for n in range(2)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()


def crash(server: EmbeddedServer) -> None:
    """Kill a session, after which the server ends all others and starts again with the same start time."""
    with psycopg.connect(server.dsn, autocommit=True) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            victim.execute("select pg_sleep(60)")


def rows(server: EmbeddedServer, query: str) -> list[Any]:
    """Return the rows of a query, once the server accepts connections."""

    def ask() -> list[list[Any]]:
        try:
            with psycopg.connect(server.dsn, autocommit=True) as database:
                return [database.execute(query.encode()).fetchall()]
        except psycopg.OperationalError:
            return []

    (found,) = eventually(ask)
    return list(found)


def kill(server: EmbeddedServer) -> None:
    server.kill()
    server.start()


@pytest.mark.slow
@pytest.mark.parametrize("interrupt", [EmbeddedServer.restart, kill, crash], ids=["restart", "kill", "crash"])
def test_a_server_that_restarts_ends_no_leases_of_workers_that_live(
    own_server: Callable[..., EmbeddedServer], tmp_path: Path, interrupt: Callable[[EmbeddedServer], object]
) -> None:
    server = own_server(fsync=False)
    with Queue(server.dsn) as queue, two_workers(server, tmp_path) as workers:
        ids = enqueue(queue, 2, 8, 0)
        for worker in workers:
            worker.wait_for("begin")
        sessions = "select name, pid from lonnymq.worker"
        before = eventually(lambda: len(found := dict(rows(server, sessions))) == 2 and found)
        # Leases and registrations are written asynchronously. A durable commit writes them as well.
        queue.set(history="metadata")
        interrupt(server)
        eventually(lambda: not before.items() & dict(rows(server, sessions)).items())
        assert before.keys() == dict(rows(server, sessions)).keys()
        for worker in workers:
            worker.wait_for("end")
        assert sorted(one for worker in workers for one in worker.ids("begin")) == ids
        assert ended_early(workers) == []
        eventually(lambda: queue.status().leased == 0)
        assert queue.check() == []


def test_a_worker_that_a_crash_of_the_server_outlives_may_return_for_ten_seconds(
    own_server: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    server = own_server(fsync=False)
    with Queue(server.dsn) as queue, two_workers(server, tmp_path) as workers:
        eventually(lambda: len(rows(server, "select from lonnymq.worker")) == 2)
        workers[0].send(signal.SIGSTOP)
        queue.set(history="metadata")
        crash(server)
        gone = "select look_at - gone_since from lonnymq.worker where gone_since is not null"
        assert eventually(lambda: rows(server, gone)) == [(10_000_000,)]
