"""on_failure is called after each attempt that failed or was lost, and never changes what happens then."""

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lonnymq
from lonnymq import (
    App,
    AsyncMessage,
    AsyncQueue,
    CompleteOutcome,
    DeferOutcome,
    Handler,
    InvalidArgument,
    LeaseExpired,
    Message,
    Queue,
    Retry,
)
from lonnymq.testing import run_until_empty
from lonnymq.worker import failure_hooks
from tests.conftest import Connect
from tests.forked import ForkedProgram
from tests.tasks.test_app import work
from tests.worker.workers import NO_DELAY, eventually, finished, run_worker, running_worker

ROOT = Path(__file__).resolve().parents[2]
Failures = list[tuple[int, str]]


def test_it_is_called_after_each_attempt_that_raised(queue: Queue) -> None:
    app, seen = App(queue), list[tuple[str, int, str, int]]()

    def report(message: Message, error: BaseException) -> None:
        assert lonnymq.current_message() == message
        arguments = message.payload["arguments"]["mode"]
        seen.append((arguments, message.attempt, repr(error), queue.status().leased))

    async def report_async(message: AsyncMessage, error: BaseException) -> None:
        assert lonnymq.current_async_message() == message
        seen.append((message.payload["arguments"]["mode"], message.attempt, repr(error), -1))

    def fail(mode: str) -> None:
        attempt = lonnymq.current_message().attempt
        if mode == "bury":
            raise lonnymq.Bury("not a video")
        if mode == "defer" and attempt == 1:
            raise lonnymq.Defer(0)
        if mode == "raise":
            raise OSError(attempt)

    options: Any = {"max_attempts": 2, "retry": NO_DELAY}
    app.task(name="plain", on_failure=report, **options)(fail)
    app.task(name="async", on_failure=report_async, **options)(fail)
    for mode in ("raise", "bury", "defer", "return"):
        app.tasks["plain"].enqueue("acme", mode)
    app.tasks["async"].enqueue("acme", "raise")
    run_until_empty(app, errors="keep")
    assert sorted(seen) == [
        ("bury", 1, "Bury('not a video')", 1),
        ("raise", 1, "OSError(1)", -1),
        ("raise", 1, "OSError(1)", 1),
        ("raise", 2, "OSError(2)", -1),
        ("raise", 2, "OSError(2)", 1),
    ]
    assert queue.status().dead == 3


def test_it_is_called_for_wrong_arguments(queue: Queue) -> None:
    app, errors = App(queue), list[BaseException]()

    @app.task(on_failure=lambda message, error: errors.append(error))
    def work_(n: int) -> None: ...

    queue.enqueue("acme", {"task": "work_", "arguments": {"n": "seven"}})
    run_until_empty(app, errors="keep")
    assert [type(one) for one in errors] == [lonnymq.Bury]


@pytest.mark.parametrize("is_async", [True, False])
def test_it_is_told_of_time_outs(queue: Queue, is_async: bool) -> None:
    app, errors, release = App(queue), list[BaseException](), threading.Event()

    def report(message: Message, error: BaseException) -> None:
        errors.append(error)

    options: Any = {"timeout": 0.05, "max_attempts": 2, "retry": NO_DELAY, "on_failure": report}

    async def hang_async() -> None:
        await asyncio.sleep(60)

    def hang() -> None:
        release.wait(60)

    app.task(name="hang", **options)(hang_async if is_async else hang)
    app.tasks["hang"].enqueue("acme")
    work(app, lambda: queue.status().dead == 1)
    release.set()
    assert [type(one) for one in errors] == [lonnymq.TimedOut, lonnymq.TimedOut]
    assert str(errors[0]) == "hang took longer than 0.05 s"


def test_it_cannot_acknowledge_the_message(queue: Queue) -> None:
    app, answers = App(queue), list[object]()

    def report(message: Message, error: BaseException) -> None:
        assert message.is_lost
        answers.extend([message.complete(), message.defer(delay=3600)])

    @app.task(max_attempts=2, retry=NO_DELAY, on_failure=report)
    def fail() -> None:
        raise OSError

    fail.enqueue("acme")
    run_until_empty(app, errors="keep")
    assert answers == [CompleteOutcome.LEASE_LOST, DeferOutcome.LEASE_LOST] * 2
    [letter] = queue.dead().list()
    assert letter.attempts == 2


@pytest.mark.parametrize("error", [ValueError("wrong hook"), SystemExit(3), asyncio.CancelledError()])
@pytest.mark.parametrize("is_async", [True, False])
def test_one_that_fails_changes_nothing(
    queue: Queue, caplog: pytest.LogCaptureFixture, error: BaseException, is_async: bool
) -> None:
    app, calls = App(queue), list[int]()

    def report(message: Any, failed_with: BaseException) -> None:
        calls.append(message.attempt)
        raise error

    async def report_async(message: Any, failed_with: BaseException) -> None:
        report(message, failed_with)

    @app.task(max_attempts=2, retry=NO_DELAY, on_failure=report_async if is_async else report)
    async def fail() -> None:
        raise OSError("no disk")

    fail.enqueue("acme")
    with caplog.at_level(logging.ERROR, "lonnymq.worker"):
        work(app, lambda: queue.status().dead == 1)
    assert calls == [1, 2]
    [letter] = queue.dead().list()
    assert str(letter.error).endswith("OSError: no disk")
    if isinstance(error, ValueError):
        assert "on_failure of fail failed for message" in caplog.text
        assert "ValueError: wrong hook" in caplog.text


@pytest.mark.parametrize("is_async", [True, False])
def test_one_that_hangs_delays_the_message_only_for_a_while(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    monkeypatch.setattr(failure_hooks, "HOOK_TIMEOUT_S", 0.1)
    app, release = App(queue), threading.Event()

    def hang(message: Message, error: BaseException) -> None:
        release.wait(60)

    async def hang_async(message: AsyncMessage, error: BaseException) -> None:
        await asyncio.sleep(60)

    @app.task(max_attempts=2, retry=NO_DELAY, on_failure=hang_async if is_async else hang)
    def fail() -> None:
        raise OSError

    fail.enqueue("acme")
    began = time.monotonic()
    work(app, lambda: queue.status().dead == 1)
    assert time.monotonic() - began < 30
    release.set()
    assert caplog.text.count("it took longer than 0.1 s") == 2


def test_a_worker_that_stops_waits_for_it(queue: Queue, dsn: str) -> None:
    """The attempt ends as it would have without the stop: it is not lost."""

    async def scenario() -> None:
        running, release = asyncio.Event(), asyncio.Event()

        async def report(message: AsyncMessage, error: BaseException) -> None:
            running.set()
            await release.wait()

        async def fail(message: AsyncMessage) -> None:
            raise OSError("no disk")

        async with AsyncQueue(dsn) as async_queue:
            await async_queue.enqueue("acme", 1)
            handler = Handler(call=fail, on_failure=report, retry=Retry(first_s=3600))
            async with running_worker(async_queue, handler) as worker:
                await running.wait()
                worker.stop()
                await asyncio.sleep(0.1)
                assert (await async_queue.status()).leased == 1
                release.set()
            assert finished(worker) == {"deferred": 1}

    asyncio.run(scenario())


def test_each_message_of_a_batch_is_reported(dsn: str) -> None:
    seen: list[int] = []

    def report(message: Message, error: BaseException) -> None:
        seen.append(message.payload)

    def fail(messages: list[Message]) -> None:
        raise OSError

    handler = Handler(call=fail, is_batch=True, max_attempts=1, on_failure=report)
    result = run_worker(dsn, handler, 1, 2, 3)
    assert sorted(seen) == [1, 2, 3]
    assert result.counts == {"buried": 3}


def test_a_lost_attempt_is_reported_before_the_next_one(queue: Queue, connect: Connect) -> None:
    app, events = App(queue), list[str]()

    @app.task(on_failure=lambda message, error: events.append(f"{type(error).__name__}: {error}"))
    def work_() -> None:
        events.append("worked")

    work_.enqueue("acme")
    connect().execute("select message_id from message_dequeue(1, p_worker => 'killed', p_is_shared => true)")
    connect().execute("update lease set unlock_at = 0")
    run_until_empty(app)
    lost = "the lease of an earlier attempt expired: its worker was killed, cut off or stopped"
    assert events == [f"LeaseExpired: {lost}", "worked"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_worker_that_stops_during_the_report_of_a_loss_does_not_start_the_attempt(
    queue: Queue, dsn: str, connect: Connect, is_async: bool
) -> None:
    runs: list[int] = []

    async def scenario() -> None:
        running = asyncio.Event()

        async def report(message: AsyncMessage, error: BaseException) -> None:
            running.set()
            await asyncio.sleep(60)

        def run(message: Message) -> None:
            runs.append(1)

        async def run_async(message: AsyncMessage) -> None:
            runs.append(1)

        async with AsyncQueue(dsn) as async_queue:
            handler = Handler(call=run_async if is_async else run, on_failure=report)
            async with running_worker(async_queue, handler, shutdown_s=0.1) as worker:
                await running.wait()
            assert worker.counts == {"given_back": 1}

    queue.enqueue("acme", 1)
    connect().execute("select message_id from message_dequeue(1, p_is_shared => true)")
    connect().execute("update lease set unlock_at = 0")
    asyncio.run(scenario())
    assert runs == []
    assert queue.status().waiting == 1


def test_the_only_attempt_that_was_lost_is_reported_by_the_worker_that_buries(
    queue: Queue, connect: Connect
) -> None:
    """The message has no limit of its own, so that the queue has not buried it."""
    app, errors = App(queue), list[BaseException]()

    @app.task(max_attempts=1, on_failure=lambda message, error: errors.append(error))
    def work_() -> None: ...

    queue.enqueue("acme", {"task": "work_", "arguments": {}})
    connect().execute("select message_id from message_dequeue(1, p_is_shared => true)")
    connect().execute("update lease set unlock_at = 0")
    run_until_empty(app, errors="keep")
    assert [type(one) for one in errors] == [LeaseExpired]
    [letter] = queue.dead().list()
    assert letter.error == "its only attempt was lost with its worker"


def test_an_attempt_that_failed_is_not_reported_again_by_its_notice(queue: Queue) -> None:
    app, seen = App(queue), list[str]()

    def report(message: Message, error: BaseException) -> None:
        seen.append(type(error).__name__)

    def fail_again(notice: Message) -> None:
        seen.append(f"notice, attempt {notice.attempt}")
        if notice.attempt == 1:
            raise ValueError

    @app.task(max_attempts=1, on_failure=report, on_buried=fail_again)
    def fail() -> None:
        raise OSError

    fail.enqueue("acme")
    run_until_empty(app, errors="keep")
    eventually(lambda: run_until_empty(app, errors="keep"), "the second attempt at the notice")
    assert seen == ["OSError", "notice, attempt 1", "notice, attempt 2"]


def test_what_cannot_be_called_with_a_message_and_an_exception_is_refused(queue: Queue) -> None:
    app = App(queue)
    for wrong in (5, lambda message: None, OSError):
        with pytest.raises(InvalidArgument, match="on_failure must be a function that takes a message and"):
            app.task(on_failure=wrong)(lambda: None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_both_hooks_run_for_attempts_whose_process_was_killed(queue: Queue, dsn: str, tmp_path: Path) -> None:
    """SIGKILL ends a worker within an attempt; the queue buries the message after its last one."""
    notes = tmp_path / "notes"
    notes.touch()
    producer = App(queue)

    def lines_of(task: str) -> list[str]:
        return [line.replace(f" {task}", "") for line in notes.read_text().splitlines() if task in line]

    def expect(task: str, attempts: int) -> None:
        declare = producer.task(name=task, max_attempts=attempts, on_failure=lambda message, error: None)
        declare(lambda: None).enqueue("acme")
        eventually(lambda: "buried" in lines_of(task), f"the burial of {task}")
        # At least once: a process that is killed for another reason would repeat a report.
        assert lines_of(task) == ["began", "failed LeaseExpired"] * attempts + ["buried"]

    program = ForkedProgram("tests.tasks.failing", dsn, str(notes), cwd=ROOT)
    try:
        expect("die_1", 1)
        expect("die_3", 3)
    finally:
        program.terminate()
        program.wait()
    letters = queue.dead().list()
    assert [one.attempts for one in letters] == [1, 3]
    assert queue.status().waiting == 0
