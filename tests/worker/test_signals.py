"""Worker processes that are stopped by signals, killed, or unable to start."""

import signal
import time
import uuid
from typing import Any

import pytest
from psycopg import conninfo, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lonnymq import ExitCode, NewMessage, Queue
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import eventually

pytestmark = pytest.mark.fault


def enqueue(queue: Queue, count: int, do: str = "sleep", seconds: float | list[float] = 0.0) -> list[int]:
    created = queue.enqueue_many(
        [NewMessage(channel="a", payload={"do": do, "seconds": seconds}) for _ in range(count)]
    )
    return [one.id for one in created if one.id is not None]


def attempts_and_leases(connect: Connect) -> tuple[dict[int, int], int]:
    """Return the attempts of live messages by id, and the number of leases."""
    connection = connect()
    attempts: dict[int, Any] = dict(connection.execute("select id, attempts from message").fetchall())
    row = connection.execute("select count(*) from lease").fetchone()
    assert row is not None
    return attempts, row[0]


def test_sigterm_finishes_running_handlers_and_gives_back_the_rest(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    ids = enqueue(queue, 8, seconds=4)
    worker = start_worker(prefetch=4)
    worker.wait_for("begin", 2)
    began = time.monotonic()
    assert worker.stop(signal.SIGTERM) == ExitCode.FINISHED
    assert time.monotonic() - began < 15
    assert worker.ids("end") == worker.ids("begin") == ids[:2]
    assert attempts_and_leases(connect) == (dict.fromkeys(ids[2:], 0), 0)


def test_a_handler_interrupted_by_shutdown_spends_no_attempt(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    ids = enqueue(queue, 3, seconds=60)
    ids += enqueue(queue, 1, "stubborn", seconds=60)
    on_loop = start_worker(shutdown_s=0.5, concurrency=4)
    on_loop.wait_for("begin", 4)
    assert on_loop.stop(signal.SIGINT) == ExitCode.INTERRUPTED
    assert sorted(on_loop.ids("cancelled")) == ids[:3]
    assert attempts_and_leases(connect) == (dict.fromkeys(ids, 0), 0)

    in_thread = start_worker("in_thread", shutdown_s=0.5, concurrency=4)
    in_thread.wait_for("begin", 4)
    assert in_thread.stop(signal.SIGTERM) == ExitCode.INTERRUPTED
    assert attempts_and_leases(connect) == (dict.fromkeys(ids, 0), 0)


def test_a_second_signal_interrupts_running_handlers(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    ids = enqueue(queue, 2, seconds=60)
    worker = start_worker(shutdown_s=60)
    worker.wait_for("begin", 2)
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    eventually(lambda: "stopping" in worker.log_text())
    assert worker.ids("cancelled") == []
    assert worker.stop(signal.SIGTERM) == ExitCode.INTERRUPTED
    assert time.monotonic() - began < 20
    assert sorted(worker.ids("cancelled")) == ids
    assert attempts_and_leases(connect) == (dict.fromkeys(ids, 0), 0)


def test_messages_of_a_killed_worker_are_processed_by_another(
    queue: Queue, start_worker: StartWorker
) -> None:
    ids = enqueue(queue, 4, seconds=[60, 0.6])
    killed = start_worker(concurrency=4, lease_s=1.5)
    killed.wait_for("begin", 4)
    killed.kill()
    successor = start_worker(concurrency=4, lease_s=1.5)
    successor.wait_for("end", 4)
    assert successor.stop() == ExitCode.FINISHED
    assert sorted(successor.ids("end")) == ids
    # It is unknown which message killed the process, so none of them has spent an attempt.
    assert {(event["attempt"], event["suspicion"]) for event in successor.events("begin")} == {(1, 1)}
    assert queue.status().waiting == 0


def test_a_message_that_kills_its_workers_is_finally_buried(queue: Queue, start_worker: StartWorker) -> None:
    [id_] = enqueue(queue, 1, "kill")
    # The first two times another message may be to blame. The third time it runs alone.
    for _ in range(3):
        killed = start_worker(lease_s=0.5, max_attempts=2)
        assert killed.wait_for_exit() == -signal.SIGKILL
    survivor = start_worker(lease_s=0.5, max_attempts=2)
    [letter] = eventually(lambda: queue.dead("a").list())
    assert survivor.stop() == ExitCode.FINISHED
    assert (letter.id, letter.attempts) == (id_, 4)
    assert "3 attempts have ended, max_attempts is 2" in (letter.error or "")
    assert survivor.events("begin") == []


def test_a_worker_with_a_blocked_event_loop_can_be_stopped(queue: Queue, start_worker: StartWorker) -> None:
    enqueue(queue, 1, "block", seconds=300)
    worker = start_worker(shutdown_s=0.1)
    worker.wait_for("begin")
    assert worker.stop(signal.SIGTERM) == ExitCode.INTERRUPTED
    assert "ended by force" in worker.log_text()


def test_a_worker_whose_role_is_not_permitted_stops_with_an_error(
    dsn: str, queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    connect().execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(role)))
    queue.grant(role, "producer")
    try:
        worker = start_worker(to=conninfo.make_conninfo(dsn, user=role, password="x"))
        assert worker.wait_for_exit() == ExitCode.UNUSABLE
        assert f"role {role!r} is not permitted to process the messages of this queue" in worker.log_text()
        assert "working as" not in worker.log_text()
    finally:
        queue.revoke(role)
        connect().execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(sql.Identifier(role)))


def test_a_worker_stops_at_once_if_the_queue_cannot_be_used(
    dsn: str, queue: Queue, start_worker: StartWorker
) -> None:
    name = conninfo_to_dict(dsn)["dbname"]
    queue.uninstall()
    missing = start_worker()
    nowhere = start_worker(to=make_conninfo(dsn, dbname="nowhere"))
    nobody = start_worker(to=make_conninfo(dsn, user="nobody_here"))
    for worker in (missing, nowhere, nobody):
        assert worker.wait_for_exit() == ExitCode.UNUSABLE
        assert "Traceback" not in worker.log_text()
        assert "working as" not in worker.log_text()
        assert "trying again" not in worker.log_text()
    assert f"there is no queue in schema 'lonnymq' of database {name!r}: run install()" in missing.log_text()
    assert "the queue cannot be used: database" in nowhere.log_text()
    assert "Check the connection string, in LONNYMQ_DSN" in nowhere.log_text()
    assert '"nowhere" does not exist' in nowhere.log_text()
    assert '"nobody_here" does not exist' in nobody.log_text()
    queue.install()
