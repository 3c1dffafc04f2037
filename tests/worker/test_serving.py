"""A worker that a program runs on its own event loop."""

import asyncio
import gc
import threading
from typing import Any

import pytest

from lonnymq import (
    AsyncMessage,
    AsyncQueue,
    ExitCode,
    NewMessage,
    Queue,
    SchemaMissing,
    Worker,
    WorkerSettings,
)
from tests.conftest import Connect
from tests.worker.workers import TIMEOUT_S, eventually, finished, running_worker, wait_until_drained

SETTINGS = WorkerSettings(concurrency=2, prefetch=3, lease_s=10)


def test_cancelling_serve_gives_all_messages_back(dsn: str, connect: Connect) -> None:
    started = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.set()
        await asyncio.sleep(60)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(6)])
            serving = asyncio.create_task(Worker(queue, handle, settings=SETTINGS).serve())
            async with asyncio.timeout(TIMEOUT_S):
                await started.wait()
                serving.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await serving
            assert (await queue.status()).leased == 0

    asyncio.run(scenario())
    assert connect().execute("select attempts from message").fetchall() == [(0,)] * 6


def test_a_worker_can_serve_again_and_be_stopped_before_it_starts(dsn: str, queue: Queue) -> None:
    async def handle(message: AsyncMessage) -> None:
        worker.stop()

    worker = Worker(dsn, handle)
    for served in range(1, 3):
        queue.enqueue("a", 1)
        assert asyncio.run(worker.serve()) is ExitCode.FINISHED
        assert finished(worker) == {"completed": served}
    queue.enqueue("a", 1)
    worker.stop()
    assert asyncio.run(worker.serve()) is ExitCode.FINISHED
    assert worker.counts["completed"] == 2


def test_a_running_worker_exempts_what_was_imported_from_collections(dsn: str, queue: Queue) -> None:
    spared: list[int] = []

    async def handle(message: AsyncMessage) -> None:
        spared.append(gc.get_freeze_count())
        worker.stop()

    worker = Worker(dsn, handle)
    queue.enqueue("a", 1)
    assert worker.run() == ExitCode.FINISHED
    assert spared[0] > 0
    assert gc.get_freeze_count() == 0


def test_a_worker_can_run_in_another_thread(dsn: str, queue: Queue) -> None:
    codes: list[int] = []

    async def handle(message: AsyncMessage) -> None: ...

    worker = Worker(dsn, handle)
    thread = threading.Thread(target=lambda: codes.append(worker.run()))
    thread.start()
    queue.enqueue("a", 1)
    eventually(lambda: worker.counts["completed"] == 1)
    worker.stop()
    thread.join(TIMEOUT_S)
    assert codes == [ExitCode.FINISHED]


def test_workers_that_share_a_client_process_each_message_once(dsn: str) -> None:
    seen: list[int] = []

    async def handle(message: AsyncMessage) -> None:
        seen.append(message.id)
        await asyncio.sleep(0.001)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            async with (
                running_worker(queue, handle),
                running_worker(queue, handle),
                running_worker(queue, handle),
            ):
                for n in range(10):
                    await queue.enqueue_many([NewMessage(channel=f"c{n}", payload=n) for _ in range(30)])
                await wait_until_drained(queue)

    asyncio.run(scenario())
    assert len(seen) == len(set(seen)) == 300


def test_serve_raises_if_the_queue_cannot_be_used(dsn: str, queue: Queue) -> None:
    queue.uninstall()
    with pytest.raises(SchemaMissing):
        asyncio.run(Worker(dsn, print).serve())
    queue.install()


def test_an_error_of_the_worker_itself_is_logged_and_ends_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error in the worker ends the process with a traceback in the log."""

    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    worker = Worker(dsn, print)
    monkeypatch.setattr(worker.router, "admit", broken)
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        assert worker.run() == ExitCode.FAILED
        assert "on purpose" in caplog.text
        assert queue.status().leased == 0
