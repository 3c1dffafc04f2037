"""Workers with several processes, as an operator sees them."""

import os
import signal
from pathlib import Path

import pytest
from psycopg import sql

from lonnymq import ExitCode, NewMessage, Queue
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.worker.conftest import StartWorker
from tests.worker.workers import WorkerProcess, eventually, is_drained

pytestmark = pytest.mark.fault


def enqueue(queue: Queue, count: int, seconds: float) -> None:
    queue.enqueue_many(
        [NewMessage(channel="a", payload={"do": "sleep", "seconds": seconds}) for _ in range(count)]
    )


def workers_of(process: WorkerProcess) -> set[int]:
    """Return the processes in which handlers have started."""
    return {event["pid"] for event in process.events("begin")}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_processes_share_the_work_and_a_dead_one_is_replaced(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    parent = start_worker(processes=2, concurrency=2, lease_s=2)

    def start_handlers(count: int, seconds: float) -> None:
        """Start this many more handlers, once all others have ended."""
        eventually(lambda: is_drained(queue.status()))
        before = len(parent.events("begin"))
        enqueue(queue, count, seconds)
        parent.wait_for("begin", before + count)

    def have_worked(count: int) -> bool:
        """Return whether this many processes have run handlers; there is work for late ones too."""
        if queue.status().waiting == 0:
            enqueue(queue, 4, seconds=0.1)
        return len(workers_of(parent)) == count

    eventually(lambda: have_worked(2))
    first, second = workers_of(parent)
    assert parent.pid not in (first, second)

    start_handlers(4, seconds=1)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: have_worked(3), "the new process has run handlers")

    # A terminal sends SIGINT to the whole process group. The children obey only their parent.
    start_handlers(4, seconds=1)
    survivors = [pid for pid in workers_of(parent) if is_alive(pid) and pid != first]
    for pid in survivors:
        os.kill(pid, signal.SIGINT)
    assert parent.stop(signal.SIGINT) == ExitCode.FINISHED
    assert parent.events("cancelled") == []
    assert not any(is_alive(pid) for pid in survivors)
    assert connect().execute("select count(*) from lease").fetchone() == (0,)


def test_a_second_signal_reaches_the_children_and_orphans_stop(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    enqueue(queue, 4, seconds=60)
    parent = start_worker(processes=2, concurrency=2, lease_s=5, shutdown_s=60)
    parent.wait_for("begin", 4)
    parent.send(signal.SIGTERM)
    eventually(lambda: "stopping 2 processes" in parent.log_text())
    assert parent.stop(signal.SIGTERM) == ExitCode.INTERRUPTED
    assert len(parent.events("cancelled")) == 4
    attempts = connect().execute("select attempts from message").fetchall()
    assert attempts == [(0,)] * 4

    killed = start_worker(processes=2, concurrency=2, lease_s=5, shutdown_s=0)
    killed.wait_for("begin", 4)
    children = workers_of(killed)
    killed.kill()
    eventually(lambda: not any(is_alive(pid) for pid in children), "orphaned children end")
    assert connect().execute("select count(*) from lease").fetchone() == (0,)


def test_a_supervisor_stops_if_its_children_cannot_use_the_queue(
    queue: Queue, start_worker: StartWorker
) -> None:
    queue.uninstall()
    parent = start_worker(processes=2)
    assert parent.wait_for_exit() == ExitCode.UNUSABLE
    assert "run install()" in parent.log_text()
    queue.install()


def test_a_handler_that_ends_its_process_does_not_stop_the_others(
    queue: Queue, start_worker: StartWorker
) -> None:
    parent = start_worker(processes=2, concurrency=1, lease_s=1, max_attempts=1)
    enqueue(queue, 1, seconds=0)
    parent.wait_for("end")
    # This is the exit code of a worker that cannot use its queue.
    queue.enqueue("a", {"do": "exit", "seconds": 3}, max_attempts=1)
    eventually(lambda: "ended with 3, starting another" in parent.log_text())
    enqueue(queue, 4, seconds=0)
    parent.wait_for("end", 5)
    assert parent.stop() == ExitCode.FINISHED


def test_a_process_that_is_replaced_in_an_outage_stops_no_other(
    dsn: str, queue: Queue, start_worker: StartWorker
) -> None:
    with Proxy(dsn) as proxy:
        parent = start_worker(to=proxy.dsn, processes=2, concurrency=1)
        enqueue(queue, 1, seconds=0)
        parent.wait_for("end")
        children = eventually(lambda: pair_of(parent), "two children")
        proxy.refuse_connections()
        os.kill(children[0], signal.SIGKILL)
        after = eventually(lambda: [pid for pid in pair_of(parent) if pid != children[0]], "a new child")
        assert children[1] in after
        proxy.refused_at.clear()
        eventually(lambda: len(proxy.refused_at) > 5, "they try to connect")
        proxy.accept_connections()
        enqueue(queue, 4, seconds=0.2)
        parent.wait_for("end", 5)
        assert is_alive(children[1])
        assert parent.stop() == ExitCode.FINISHED


def test_processes_are_restarted_until_the_queue_can_be_used_again(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    parent = start_worker(processes=2, concurrency=1)
    enqueue(queue, 1, seconds=0)
    parent.wait_for("end")
    comment = connect().execute("select obj_description('migration'::regclass)").fetchone()
    connect().execute("comment on table migration is 'lonnymq later 99 99'")
    for pid in eventually(lambda: pair_of(parent), "two children"):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: "ended with 3, starting another" in parent.log_text())
    connect().execute(sql.SQL("comment on table migration is {}").format(*(comment or ())))
    enqueue(queue, 1, seconds=0)
    parent.wait_for("end", 2)
    assert parent.stop() == ExitCode.FINISHED


def pair_of(parent: WorkerProcess) -> list[int]:
    children = children_of(parent.pid)
    return children if len(children) == 2 else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_process_group_during_startup_is_no_failure(
    start_worker: StartWorker, number: signal.Signals
) -> None:
    parent = start_worker(processes=2)
    children = eventually(lambda: children_of(parent.pid), "children")
    parent.send(number)
    for pid in children:
        os.kill(pid, number)
    assert parent.wait_for_exit() == ExitCode.FINISHED
    assert "Traceback" not in parent.log_text()


def children_of(pid: int) -> list[int]:
    """Return the spawned workers; another child of the process tracks shared resources."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
