"""The results of tasks: kept on request, typed, and waited for."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import date, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, assert_type

import pytest

import lonnymq
from lonnymq.calls.result import KEEP_HEADER
from lonnymq.testing import run_until_empty
from tests.forked import ForkedProgram
from tests.worker.workers import eventually

HOUR = timedelta(hours=1)


@dataclass
class Video:
    id: int
    day: date


@pytest.fixture
def app(dsn: str) -> Any:
    with lonnymq.Queue(dsn) as queue:
        queue.install()
        yield lonnymq.App(queue)


def test_a_result_has_the_type_that_the_task_returns(app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task(keep_result=HOUR)
    def find(video: int) -> Video:
        return Video(video, date(2026, 1, 2))

    @app.task(keep_result=HOUR)
    async def find_later(video: int) -> list[Video]:
        return [Video(video, date(2026, 1, 2))]

    @app.task
    def forget(video: int) -> int:
        return video

    found, later, forgotten = find.enqueue("a", 7), find_later.enqueue("a", 8), forget.enqueue("a", 9)
    assert_type(found, lonnymq.Enqueued[Video])
    assert_type(later, lonnymq.Enqueued[list[Video]])
    assert found.outcome is lonnymq.CreateOutcome.CREATED
    with pytest.raises(lonnymq.NotFinished):
        found.result()
    run_until_empty(app)
    assert_type(found.result(), Video)
    assert found.result() == Video(7, date(2026, 1, 2))
    assert later.result() == [Video(8, date(2026, 1, 2))]
    with pytest.raises(lonnymq.ResultUnknown):
        forgotten.result()

    kept = forget.options(keep_result=60).enqueue("a", 10)
    run_until_empty(app)
    assert kept.result() == 10


def test_a_result_is_awaited_in_async_code(dsn: str, app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task(keep_result=HOUR)
    async def double(number: int) -> int:
        return 2 * number

    async def main() -> int:
        async with lonnymq.AsyncQueue(dsn) as queue:
            worker = lonnymq.Worker(queue, app)
            serving = asyncio.create_task(worker.serve())
            created = await double.enqueue_async("a", 21)
            assert_type(created, lonnymq.AsyncEnqueued[int])
            result = await created.result(wait=60)
            worker.stop()
            await serving
            await app.clients.close_async()
            return result

    assert asyncio.run(main()) == 42


def test_waiting_raises_what_happened_instead(app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task(keep_result=HOUR, max_attempts=1)
    def fail() -> int:
        raise ValueError("no such video")

    @app.task(keep_result=HOUR)
    def unkeepable() -> Any:
        return {1, 2}

    failed, lost, cancelled = fail.enqueue("a"), unkeepable.enqueue("a"), fail.enqueue("a")
    app.queue.cancel([cancelled.id or 0])
    run_until_empty(app, errors="keep")
    with pytest.raises(lonnymq.MessageBuried, match="no such video") as caught:
        failed.result(wait=60)
    assert "ValueError" in (caught.value.error or "")
    with pytest.raises(lonnymq.MessageBuried, match="the task has run, but its result cannot be kept"):
        lost.result()
    with pytest.raises(lonnymq.MessageCancelled):
        cancelled.result()


def test_a_retried_task_has_the_result_of_its_last_attempt(app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task(keep_result=HOUR, retry=lonnymq.Retry(first_s=0.001))
    def second_try() -> int:
        if lonnymq.current_message().attempt == 1:
            raise ValueError
        return lonnymq.current_message().attempt

    created = second_try.enqueue("a")

    def has_ended() -> bool:
        run_until_empty(app, errors="keep")
        return not app.queue.status_of(created.id or 0).status.is_live

    eventually(has_ended)
    assert created.result() == 2


def test_a_decorated_async_function_has_a_result(app: lonnymq.App[lonnymq.Queue]) -> None:
    async def inner() -> int:
        return 7

    @wraps(inner)
    def outer() -> Any:
        return inner()

    created = app.task(keep_result=HOUR)(outer).enqueue("a")
    run_until_empty(app)
    assert created.result() == 7


def test_a_dropped_call_has_no_result(app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task(keep_result=HOUR)
    def work() -> int:
        return 1

    app.queue.channel("a").set(max_size=1)
    work.enqueue("a")
    with pytest.raises(lonnymq.ResultUnknown, match="dropped"):
        work.enqueue("a").result(wait=60)


def test_a_bad_time_to_keep_is_refused_where_it_is_written(app: lonnymq.App[lonnymq.Queue]) -> None:
    with pytest.raises(lonnymq.InvalidArgument, match="keep_result"):
        app.task(keep_result=timedelta(days=8))(lambda: None)


SHOP = """
import lonnymq
app = lonnymq.App()

@app.task(keep_result=3600)
def add(a: int, b: int) -> int:
    return a + b
"""


def test_results_come_from_worker_processes(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    module: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONNYMQ_DSN", dsn)
        exec(SHOP, module)
        worker = ForkedProgram("lonnymq", "work", "shop", cwd=tmp_path)
    found: dict[int, int] = {}

    def wait_for(n: int, call: lonnymq.Enqueued[int]) -> None:
        found[n] = call.result(wait=60)

    try:
        calls = [module["add"].enqueue(f"tenant {n % 3}", n, 1) for n in range(20)]
        waiting = [threading.Thread(target=wait_for, args=one) for one in enumerate(calls)]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join(60)
        assert found == {n: n + 1 for n in range(20)}
    finally:
        worker.terminate()
        worker.wait()
        module["app"].queue.close()


def test_a_result_that_nobody_asked_for_correctly_is_not_converted(app: lonnymq.App[lonnymq.Queue]) -> None:
    @app.task
    def unkeepable() -> Any:
        return {1, 2}

    def broken() -> int:
        return 7

    broken.__annotations__["return"] = "datetime.no_such_name"
    ids = [
        unkeepable.options(headers=headers).enqueue("a").id or 0
        for headers in ({KEEP_HEADER: "an hour"}, {KEEP_HEADER: "٣"}, {"trace": KEEP_HEADER})
    ]
    unresolved = app.task(keep_result=HOUR)(broken).enqueue("a").id or 0
    run_until_empty(app, errors="keep")
    assert {app.queue.status_of(id_).status for id_ in ids} == {lonnymq.MessageStatus.UNKNOWN}
    report = app.queue.status_of(unresolved)
    assert report.status is lonnymq.MessageStatus.BURIED
    assert "the task has run, but its result cannot be kept" in (report.error or "")
