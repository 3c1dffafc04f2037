"""Processes report what they are and do, and stop when they are asked to drain."""

import os
import re
import signal
import socket
from collections.abc import Callable

import pytest

import lonnymq
from lonnymq import ExitCode, HeldMessage, Queue, WorkerState, WorkerStatus
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import eventually

pytestmark = pytest.mark.fault

LONG_S = 3_000


def enqueue(queue: Queue, seconds: float | None) -> int:
    """Enqueue a message that takes this long, or until the test releases it."""
    created = queue.enqueue("a", {"do": "wait" if seconds is None else "sleep", "seconds": seconds})
    assert created.id is not None
    return created.id


def find(queue: Queue, matches: Callable[[WorkerStatus], object]) -> WorkerStatus:
    """Wait until a process reports something."""
    found: WorkerStatus = eventually(lambda: next(filter(matches, queue.workers()), None))
    return found


def test_a_process_is_listed_with_what_it_holds_and_drains_without_a_time_limit(
    queue: Queue, start_worker: StartWorker, connect: Connect
) -> None:
    hostile = "w'\"%\u202e\x1b[31m"
    worker = start_worker(concurrency=2, name=hostile, shutdown_s=0.0)
    running = enqueue(queue, None)
    worker.wait_for("begin")
    shown = find(queue, lambda one: one.busy)
    (message,) = queue.peek("a", is_leased=True)
    assert message.leased_at is not None
    assert re.fullmatch(re.escape(f"{hostile}:{worker.pid}:") + "[0-9a-f]{16}", shown.worker)
    assert shown.worker == message.worker
    assert (shown.state, shown.host, shown.pid) == (WorkerState.WORKING, socket.gethostname(), worker.pid)
    assert (shown.version, shown.tasks) == (lonnymq.__version__, ("on_loop",))
    assert (shown.slots, shown.busy, shown.held) == (2, 1, 1)
    assert [(one.id, one.channel) for one in shown.holds] == [(running, "a")]
    assert isinstance(shown.holds[0], HeldMessage)
    assert abs((shown.holds[0].leased_at - message.leased_at).total_seconds()) < 0.01
    assert shown.started_at <= shown.seen_at

    # While it is stopped it does not report, and is shown as gone until it continues.
    worker.send(signal.SIGSTOP)
    connect().execute("update lonnymq.worker_process set seen_at = seen_at - 16000000")
    assert [one.state for one in queue.workers()] == [WorkerState.GONE]
    worker.send(signal.SIGCONT)
    find(queue, lambda one: one.state is WorkerState.WORKING)

    assert [one.outcome for one in queue.drain_workers(hostile)] == ["draining"]
    assert [one.state for one in queue.workers()] == [WorkerState.DRAINING]
    eventually(lambda: "draining: waiting for 1 running handler" in worker.log_text())
    waiting = enqueue(queue, 0)
    # It waits for the handler, although it would not at SIGTERM.
    worker.release()
    assert worker.wait_for_exit() == ExitCode.FINISHED
    assert worker.ids("end") == [running]
    assert queue.status_of(waiting).status == "waiting"
    assert queue.workers() == []


def test_a_signal_ends_a_drain_that_takes_too_long(queue: Queue, start_worker: StartWorker) -> None:
    worker = start_worker(shutdown_s=0.5)
    enqueue(queue, LONG_S)
    worker.wait_for("begin")
    find(queue, lambda one: one.held)
    assert len(queue.drain_workers(None)) == 1
    eventually(lambda: "draining" in worker.log_text())
    assert worker.stop() == ExitCode.INTERRUPTED
    assert worker.events("cancelled")


def test_a_supervisor_replaces_no_process_that_was_drained(queue: Queue, start_worker: StartWorker) -> None:
    def processes() -> set[int]:
        return {one.pid for one in queue.workers() if one.state is WorkerState.WORKING}

    fleet = start_worker(processes=2, concurrency=1)
    first, second = sorted(eventually(lambda: len(found := processes()) == 2 and found))
    assert [one.outcome for one in queue.drain_workers(f"{socket.gethostname()}:{first}")] == ["draining"]
    eventually(lambda: f"worker process {first} has drained, 1 remain" in fleet.log_text())
    # Another one that dies is still replaced.
    os.kill(second, signal.SIGKILL)
    (third,) = eventually(lambda: len(found := processes() - {first, second}) == 1 and found)
    find(queue, lambda one: one.pid == second and one.state is WorkerState.GONE)
    assert first not in {one.pid for one in queue.workers()}
    queue.drain_workers(None)
    assert fleet.wait_for_exit() == ExitCode.FINISHED
    assert f"worker process {third} has drained, 0 remain" in fleet.log_text()


def test_a_worker_behind_a_pooler_reports_too(queue: Queue, start_worker: StartWorker) -> None:
    worker = start_worker(client={"listen": False, "prepare_threshold": None})
    assert find(queue, lambda one: True).pid == worker.pid
    queue.drain_workers(None)
    assert worker.wait_for_exit() == ExitCode.FINISHED


def test_a_worker_works_although_its_reports_are_refused(
    queue: Queue, start_worker: StartWorker, connect: Connect
) -> None:
    connect().execute("drop function lonnymq.worker_report")
    worker = start_worker()
    worker.wait_for_ids("end", [enqueue(queue, 0)])
    eventually(lambda: "reporting failed, trying again" in worker.log_text())
    assert worker.stop() == ExitCode.FINISHED
