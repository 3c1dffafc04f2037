"""Metrics of a worker: what they count, in one process and merged from several."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lonnymq import App, Bury, Handler, Queue, Retry, Worker, WorkerSettings
from lonnymq.errors import InvalidArgument
from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.worker_metrics import WorkerCollector, encode_worker_metrics
from lonnymq.worker.metrics import MAX_TASKS, OTHER_TASKS, OUTCOMES, WorkerFigures, WorkerMetrics
from tests.telemetry.scrape import check_with_promtool, samples
from tests.worker.workers import finished

HOSTILE = 'resize "x"\\n{task="y"} 1\u2028'
ATTEMPTS, TOOK, WAITED = (
    "lonnymq_worker_attempts_total",
    "lonnymq_worker_process_seconds",
    "lonnymq_worker_wait_seconds",
)


class Routes:
    """Gives each message the handler that its payload names."""

    def route(self, message: Any) -> Handler:
        return Handler(call=self.handle, name=message.payload, retry=Retry(first_s=0.0, max_s=0.0))

    async def handle(self, message: Any) -> None:
        if message.payload == "bad":
            raise Bury("no disk")
        if message.payload == "flaky" and message.attempt == 1:
            raise RuntimeError("again")


def drain(dsn: str, handler: Any, attempts: int) -> dict[tuple[str, ...], float]:
    """Let a worker end so many attempts, and return its metrics while it still runs."""

    async def scenario() -> dict[tuple[str, ...], float]:
        worker = Worker(dsn, handler, settings=WorkerSettings(concurrency=4))
        registry = CollectorRegistry()
        registry.register(WorkerCollector(worker))
        serving = asyncio.create_task(worker.serve())
        while sum(finished(worker).values()) < attempts or worker.measure().figures().busy:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        text = generate_latest(registry).decode()
        worker.stop()
        await serving
        check_with_promtool(text)
        return samples(text)

    return asyncio.run(scenario())


def test_attempts_are_counted_by_task_and_outcome(queue: Queue, dsn: str) -> None:
    app = App(queue)

    @app.task
    def resize(video: int) -> None:
        time.sleep(0.01)

    @app.task
    def never_called() -> None: ...

    for video in range(3):
        resize.enqueue("acme", video=video)
    resize.options(delay=0.2).enqueue("acme", video=4)
    queue.enqueue("acme", {"task": "unknown", "arguments": {}}, max_attempts=1)
    before = time.time()
    found = drain(dsn, app, attempts=5)
    resized = next(key[2] for key in found if key[0] == ATTEMPTS and key[2].endswith("resize"))
    assert found[ATTEMPTS, "completed", resized] == 4
    assert found[f"{TOOK}_count", resized] == 4
    assert 0.04 <= found[f"{TOOK}_sum", resized] < 60
    assert found[f"{WAITED}_count",] >= 4
    # A task that was never called is shown, and so are outcomes that no attempt had.
    unused = resized.replace("resize", "never_called")
    assert [found[ATTEMPTS, outcome, unused] for outcome in OUTCOMES] == [0.0] * len(OUTCOMES)
    assert found[f"{TOOK}_bucket", "+Inf", unused] == 0
    assert (found["lonnymq_worker_slots", "busy"], found["lonnymq_worker_slots", "free"]) == (0, 4)
    assert found["lonnymq_worker_processes",] == 1
    assert before - 60 < found["lonnymq_worker_last_fetch_timestamp_seconds",] <= time.time()
    assert {key[0].removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for key in found} == {
        one.name for one in names.WORKER_METRICS
    }


def test_names_of_tasks_are_escaped_and_bounded(queue: Queue, dsn: str) -> None:
    payloads = [HOSTILE, "bad", "flaky", *(f"task {number}" for number in range(MAX_TASKS + 20))]
    for payload in payloads:
        queue.enqueue("a", payload)
    found = drain(dsn, Routes(), attempts=len(payloads) + 1)
    assert found[ATTEMPTS, "completed", HOSTILE] == 1
    assert found[ATTEMPTS, "buried", "bad"] == 1
    assert (found[ATTEMPTS, "deferred", "flaky"], found[ATTEMPTS, "completed", "flaky"]) == (1, 1)
    tasks = {key[2] for key in found if key[0] == ATTEMPTS}
    assert len(tasks) <= MAX_TASKS + 1
    assert OTHER_TASKS in tasks
    assert sum(value for key, value in found.items() if key[0] == ATTEMPTS) >= len(payloads) + 1


def test_figures_of_processes_are_added_up_after_a_round_trip() -> None:
    first, second = WorkerMetrics(), WorkerMetrics()
    first.add_tasks(["a", HOSTILE])
    second.add_tasks(["a", "b"])
    figures = [
        WorkerFigures.from_json(json.loads(json.dumps(one.figures().to_json()))) for one in (first, second)
    ]
    assert [one.tasks for one in figures] == [first.figures().tasks, second.figures().tasks]
    figures[0].tasks["a"].outcomes["completed"] += 2
    figures[1].tasks["a"].outcomes["completed"] += 3
    figures[1].wait.counts[0] += 1
    busy = replace(figures[1], slots=4, busy=3, last_fetch_at=7.0)
    total = replace(figures[0], slots=4, last_fetch_at=9.0).plus(busy)
    assert (total.processes, total.slots, total.busy, total.last_fetch_at) == (2, 8, 3, 7.0)
    assert total.tasks["a"].outcomes["completed"] == 5
    assert set(total.tasks) == {"a", "b", HOSTILE}
    # A process that has ended keeps its counts, so that no counter goes back, and nothing else.
    later = figures[0].plus(busy.ended())
    assert (later.processes, later.slots, later.busy) == (1, 0, 0)
    assert later.tasks["a"].outcomes["completed"] == 5
    found = samples(encode_worker_metrics(total, "")[0].decode())
    assert found[f"{WAITED}_bucket", "+Inf"] == found[f"{WAITED}_count",] == 1
    # However many processes and tasks there are, the series stay bounded.
    many = WorkerFigures()
    for number in range(10):
        one = WorkerMetrics()
        one.add_tasks(f"{number} {task}" for task in range(MAX_TASKS))
        many = many.plus(one.figures())
    assert len(many.tasks) == MAX_TASKS + 1


def test_a_collector_refuses_a_worker_with_several_processes(dsn: str) -> None:
    with pytest.raises(InvalidArgument, match="--health-port"):
        WorkerCollector(Worker(dsn, Routes(), settings=WorkerSettings(processes=2)))
