"""A message that kills its process does not make others fail."""

import signal
import time
from functools import partial
from typing import Any

import pytest

from lonnymq import ExitCode, NewMessage, Queue
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import TIMEOUT_S, WorkerProcess, eventually, is_drained

pytestmark = pytest.mark.fault

ATTEMPTS = 5


def enqueue(
    queue: Queue, channel: str, count: int, do: str, seconds: float = 0.05, max_attempts: int = ATTEMPTS
) -> list[int]:
    created = queue.enqueue_many(
        [
            NewMessage(channel=channel, payload={"do": do, "seconds": seconds}, max_attempts=max_attempts)
            for _ in range(count)
        ]
    )
    return [one.id for one in created if one.id is not None]


class RestartedWorker:
    """Starts a worker again whenever it dies, as an orchestrator does."""

    def __init__(self, start: StartWorker, **settings: Any) -> None:
        self._start = partial(start, **settings)
        self._processes: list[WorkerProcess] = [self._start()]

    @property
    def deaths(self) -> int:
        return len(self._processes) - 1

    def restart_if_dead(self) -> None:
        if self._processes[-1].is_dead:
            self._processes.append(self._start())

    def ids(self, kind: str) -> list[int]:
        return [id_ for process in self._processes for id_ in process.ids(kind)]

    def stop(self) -> int:
        return self._processes[-1].stop()


@pytest.mark.slow
@pytest.mark.parametrize("death", ["kill", "block"])
def test_a_message_that_kills_its_process_is_buried_and_others_complete(
    queue: Queue, start_worker: StartWorker, death: str
) -> None:
    """Nine innocent messages, of the same channel and of another, run in the process of the guilty one."""
    [guilty] = enqueue(queue, "a", 1, death, seconds=2.5)
    innocent = enqueue(queue, "a", 5, "sleep") + enqueue(queue, "b", 4, "sleep")
    # Only another worker notices that one is blocked.
    count = 1 if death == "kill" else 2
    workers = [RestartedWorker(start_worker, concurrency=10, lease_s=0.8, shutdown_s=1) for _ in range(count)]
    later: list[int] = []

    def is_over() -> bool:
        for worker in workers:
            worker.restart_if_dead()
        if len(later) < 20:
            later.extend(enqueue(queue, "c", 1, "sleep"))
        time.sleep(0.1)
        return bool(queue.dead("a").list()) and is_drained(queue.status())

    eventually(is_over)
    [letter] = queue.dead().list()
    assert letter.id == guilty
    assert letter.attempts == ATTEMPTS
    ended = {id_ for worker in workers for id_ in worker.ids("end")}
    assert ended - {guilty} == {*innocent, *later}
    if death == "kill":
        assert workers[0].deaths == ATTEMPTS
    for worker in workers:
        assert worker.stop() in (ExitCode.FINISHED, ExitCode.INTERRUPTED)


@pytest.mark.slow
def test_a_finished_message_is_not_blamed_for_the_next_one(queue: Queue, start_worker: StartWorker) -> None:
    """Again and again, the next message kills the process before the completion of the first is sent."""
    innocent = enqueue(queue, "a", 1, "sleep", seconds=0.0)
    enqueue(queue, "b", 3, "kill")
    worker = RestartedWorker(start_worker, concurrency=1, prefetch=0, lease_s=0.5)

    def is_over() -> bool:
        worker.restart_if_dead()
        return len(queue.dead().list()) == 3 and is_drained(queue.status())

    eventually(is_over)
    assert set(worker.ids("end")) == set(innocent)
    assert {letter.channel for letter in queue.dead().list()} == {"b"}


def test_a_suspect_message_waits_until_its_process_is_empty(queue: Queue, start_worker: StartWorker) -> None:
    """It runs alone although other handlers were running when it was leased, and others continue after it."""
    suspects = enqueue(queue, "a", 2, "sleep", seconds=0.5)
    for _ in range(2):
        killed = start_worker(concurrency=2, lease_s=0.5)
        killed.wait_for_ids("begin", suspects)
        killed.kill()
    long = enqueue(queue, "b", 3, "sleep", seconds=1.5)
    worker = start_worker(concurrency=4, lease_s=1)
    worker.wait_for_ids("begin", long)
    worker.wait_for_ids("end", [*long, *suspects, *enqueue(queue, "c", 3, "sleep")])
    assert worker.stop(signal.SIGTERM) == ExitCode.FINISHED
    running: set[int] = set()
    for event in worker.events():
        if event["event"] == "begin":
            running.add(event["id"])
            if event["id"] in suspects:
                assert running == {event["id"]}
        else:
            running.discard(event["id"])
            assert not running & set(suspects) or event["id"] in suspects
    assert queue.dead().list() == []


@pytest.mark.parametrize(
    ("program", "do", "timeout"), [("on_loop", "sleep", None), ("in_thread", "stubborn", 0.2)]
)
def test_a_process_that_is_not_empty_leaves_a_suspect_to_another(
    queue: Queue, connect: Connect, start_worker: StartWorker, program: str, do: str, timeout: float | None
) -> None:
    """Its handler runs for long, or hangs in a thread after its attempt has ended."""
    busy = start_worker(program, timeout=timeout)
    enqueue(queue, "a", 1, do, seconds=TIMEOUT_S, max_attempts=1)
    busy.wait_for("begin")
    if timeout is not None:
        eventually(lambda: queue.dead().list())
    suspect = queue.enqueue("b", {"do": "sleep", "seconds": 0.0}, delay=0.5)
    connect().execute("update message set suspicion = 2 where id = %s", [suspect.id])
    eventually(lambda: "giving back messages: a message must run alone" in busy.log_text())
    idle = start_worker()
    eventually(lambda: suspect.id in idle.ids("end"))
    assert suspect.id not in busy.ids("begin")


def test_other_tenants_make_progress_between_suspect_messages(
    queue: Queue, start_worker: StartWorker
) -> None:
    """After each message that ran alone, others get as much time as that one took."""
    suspects = enqueue(queue, "a", 6, "sleep", seconds=1.0)
    for _ in range(2):
        killed = start_worker(concurrency=6, lease_s=0.5)
        killed.wait_for_ids("begin", suspects)
        killed.kill()
    worker = start_worker(concurrency=6, lease_s=2)
    others: list[int] = []

    def is_over() -> bool:
        others.extend(enqueue(queue, "b", 1, "sleep", seconds=0.01))
        time.sleep(0.05)
        return set(suspects) <= set(worker.ids("end"))

    eventually(is_over)
    ended = worker.ids("end")
    between = [sum(1 for id_ in ended[: ended.index(suspect)] if id_ in others) for suspect in suspects]
    # Others were processed before each suspect except perhaps the first.
    assert len(set(between)) >= len(suspects) - 1
    assert worker.stop() == ExitCode.FINISHED
    assert queue.dead().list() == []
