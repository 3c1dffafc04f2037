"""What handlers can do, and what happens to their messages."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import lonnymq
from lonnymq import (
    AsyncMessage,
    AsyncQueue,
    Bury,
    Defer,
    Handler,
    LonnyError,
    Message,
    Queue,
    Worker,
    WorkerSettings,
    current_async_message,
    current_message,
)
from tests.worker.workers import (
    finished,
    handler_without_delay,
    run_worker,
    running_worker,
    wait_until_drained,
)


def test_a_message_is_completed_when_any_kind_of_function_returns(dsn: str) -> None:
    seen: dict[str, set[Any]] = {"loop": set(), "thread": set(), "object": set(), "returns awaitable": set()}

    async def on_loop(message: AsyncMessage) -> str:
        assert type(message) is AsyncMessage
        assert threading.current_thread() is threading.main_thread()
        seen["loop"].add(message.payload)
        return "ignored"

    def in_thread(message: Message) -> None:
        assert type(message) is Message
        assert threading.current_thread().name.startswith("lonnymq-handler-")
        seen["thread"].add(message.payload)

    class OnLoop:
        async def __call__(self, greeting: str, message: AsyncMessage) -> None:
            await asyncio.sleep(0)
            seen[greeting].add(message.payload)

    def returns_awaitable(message: Message) -> Awaitable[None]:
        async def later() -> None:
            await asyncio.sleep(0)
            seen["returns awaitable"].add(message.payload)

        return later()

    for handler in (on_loop, in_thread, partial(OnLoop(), "object"), returns_awaitable):
        result = run_worker(dsn, handler, *range(20))
        assert result.counts == {"completed": 20}
        assert not result.dead_letters
    assert seen == {kind: set(range(20)) for kind in seen}


def test_an_error_is_retried_and_the_last_traceback_is_kept(dsn: str) -> None:
    attempts: list[int] = []

    def fails(message: Message) -> None:
        attempts.append(message.attempt)
        raise RuntimeError(f"the disk of attempt {message.attempt} is full\0\udcff")

    result = run_worker(dsn, handler_without_delay(fails, max_attempts=3), 1)
    assert result.counts == {"deferred": 2, "buried": 1}
    [letter] = result.dead_letters
    assert attempts == [1, 2, 3]
    assert letter.error is not None
    assert letter.error.startswith("Traceback")
    assert "in fails" in letter.error
    assert letter.error.splitlines()[-1] == "RuntimeError: the disk of attempt 3 is full\\x00\\udcff"
    assert "lonnymq/worker" not in letter.error


def test_the_limit_of_a_channel_applies_without_one_of_the_handler(dsn: str, queue: Queue) -> None:
    queue.channel("a").set(max_attempts=2)

    async def fails(message: AsyncMessage) -> None:
        raise ValueError("x" * 50_000)

    result = run_worker(dsn, handler_without_delay(fails), 1)
    assert result.counts == {"deferred": 1, "buried": 1}
    assert result.dead_letters[0].attempts == 2
    assert len(result.dead_letters[0].error or "") < 12_000


def test_a_handler_can_defer_with_a_state_or_bury(dsn: str) -> None:
    states: list[Any] = []

    async def in_steps(message: AsyncMessage) -> None:
        states.append(message.state)
        match message.payload:
            case "steps" if message.attempt < 3:
                raise Defer(delay=0.01, state={"done": message.attempt})
            case "waits":
                raise Defer(3600, error="not today")
            case "never":
                raise Bury("no such video")
            case "unfit":
                raise Defer(state=object())

    result = run_worker(dsn, handler_without_delay(in_steps, max_attempts=5), "steps")
    assert states == [None, {"done": 1}, {"done": 2}]
    assert result.counts == {"deferred": 2, "completed": 1}
    result = run_worker(dsn, handler_without_delay(in_steps), "never")
    assert [letter.error for letter in result.dead_letters] == ["no such video"]
    result = run_worker(dsn, handler_without_delay(in_steps, max_attempts=2), "unfit")
    assert result.counts == {"deferred": 1, "buried": 1}
    result = run_worker(dsn, handler_without_delay(in_steps, max_attempts=1), "waits")
    assert result.dead_letters[-1].error == "not today"


def test_any_exception_of_a_handler_ends_only_its_attempt(dsn: str) -> None:
    class Strange(BaseException):
        pass

    async def on_loop(message: AsyncMessage) -> None:
        if message.attempt == 1:
            match message.payload:
                case 0:
                    sys.exit(7)
                case 1:
                    raise Strange
                case 2:
                    raise asyncio.CancelledError
                case 3:
                    raise KeyboardInterrupt
                case 4:
                    raise StopIteration
                case 5:
                    raise TimeoutError
                case 6:
                    raise GeneratorExit

    def in_thread(message: Message) -> None:
        on_loop(message).send(None)  # type: ignore[arg-type]

    assert run_worker(dsn, handler_without_delay(on_loop), *range(8)).counts == {
        "deferred": 7,
        "completed": 8,
    }
    # Here the StopIteration at the end of the coroutine is an error too, in every attempt.
    result = run_worker(dsn, handler_without_delay(in_thread, max_attempts=2), *range(8))
    assert result.counts == {"deferred": 8, "buried": 8}


def test_a_timeout_ends_an_attempt(dsn: str) -> None:
    timed_out = threading.Event()

    async def on_loop(message: AsyncMessage) -> None:
        await asyncio.sleep(60)

    def in_thread(message: Message) -> None:
        until = time.monotonic() + 30
        while not message.is_lost and time.monotonic() < until:
            time.sleep(0.01)
        timed_out.set()

    for handler in (on_loop, in_thread):
        result = run_worker(dsn, handler_without_delay(handler, timeout=0.2, max_attempts=1), 1)
        assert result.took_s < 20
        letter = result.dead_letters[-1]
        assert (letter.error or "").endswith(f"{handler.__name__} took longer than 0.2 s")
    assert timed_out.wait(10)
    quick = run_worker(dsn, handler_without_delay(lambda message: None, timeout=30), *range(10))
    assert quick.counts == {"completed": 10}


def test_a_batch_handler_gives_all_its_messages_the_same_outcome(dsn: str) -> None:
    sizes: list[int] = []

    async def on_loop(messages: list[AsyncMessage]) -> None:
        sizes.append(len(messages))
        if any(message.attempt == 1 for message in messages):
            raise Defer(0)
        await messages[0].complete()
        assert await messages[0].queue.bury(messages[1:2], error="odd") in (["buried"], [])

    def in_thread(messages: list[Message]) -> None:
        assert current_message() is messages[0]
        sizes.append(len(messages))

    result = run_worker(dsn, Handler(call=on_loop, is_batch=True), *range(60), batch_size=30, concurrency=2)
    assert result.counts["deferred"] == 60
    assert result.counts["completed"] + result.counts["buried"] == 60
    assert 1 < max(sizes) <= 30
    result = run_worker(dsn, Handler(call=in_thread, is_batch=True), *range(60), batch_size=7)
    assert result.counts == {"completed": 60}
    assert max(sizes[-9:]) <= 7


def test_the_current_message_and_context_are_those_of_the_attempt(dsn: str) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")
    leaked: list[Any] = []

    async def on_loop(message: AsyncMessage) -> None:
        leaked.append(tenant.get(None))
        tenant.set(message.channel)
        await asyncio.sleep(0)
        assert current_async_message() is message
        assert await asyncio.create_task(child()) is message

    async def child() -> Any:
        return current_async_message()

    def in_thread(message: Message) -> None:
        leaked.append(tenant.get(None))
        tenant.set(message.channel)
        assert current_message() is message

    for handler in (on_loop, in_thread):
        assert run_worker(dsn, handler, *range(10), concurrency=1).counts == {"completed": 10}
    assert leaked == [None] * 20
    for current in (current_message, current_async_message):
        with pytest.raises(LonnyError, match="there is no current message"):
            current()


def test_the_current_message_has_the_type_that_its_code_can_use(dsn: str) -> None:
    """The other type would return a coroutine that is never awaited, or block the event loop."""
    seen: list[str] = []

    async def around(message: AsyncMessage, call: Callable[[], Awaitable[None]]) -> None:
        assert current_async_message() is message
        try:
            await call()
        finally:
            assert current_async_message() is message

    async def on_loop(message: AsyncMessage) -> None:
        with pytest.raises(LonnyError, match=r"event loop: call current_async_message\(\) instead"):
            current_message()
        assert await current_async_message().heartbeat() == "extended"
        seen.append("loop")

    def in_thread(message: Message) -> None:
        with pytest.raises(LonnyError, match=r"in a thread of the worker: call current_message\(\) instead"):
            current_async_message()
        assert current_message().heartbeat() == "extended"
        seen.append("thread")

    def returns_awaitable(message: Message) -> Awaitable[None]:
        async def later() -> None:
            await on_loop(current_async_message())

        return later()

    for handler in (on_loop, in_thread, returns_awaitable):
        for middleware in ((), (around,)):
            result = run_worker(dsn, handler_without_delay(handler, max_attempts=1), 1, middleware=middleware)
            assert result.counts == {"completed": 1}, result.dead_letters
    assert seen == ["loop", "loop", "thread", "thread", "loop", "loop"]


def test_middleware_runs_around_each_attempt(dsn: str) -> None:
    request: ContextVar[str] = ContextVar("request")
    trace: list[str] = []
    seen: list[str] = []

    async def outer(message: AsyncMessage, call: Callable[[], Awaitable[None]]) -> None:
        request.set(f"request {message.payload}")
        trace.append("outer in")
        try:
            await call()
        except Defer:
            trace.append("outer deferred")
            raise

    async def inner(message: AsyncMessage, call: Callable[[], Awaitable[None]]) -> None:
        if message.payload == "refused":
            raise Bury("not by us")
        trace.append("inner in")
        await call()
        trace.append("inner out")

    def in_thread(message: Message) -> None:
        seen.append(request.get())
        if message.attempt == 1:
            raise Defer(0)

    async def on_loop(message: AsyncMessage) -> None:
        seen.append(request.get())

    result = run_worker(dsn, in_thread, 7, middleware=[outer, inner])
    assert result.counts == {"deferred": 1, "completed": 1}
    assert trace == ["outer in", "inner in", "outer deferred", "outer in", "inner in", "inner out"]
    result = run_worker(dsn, on_loop, "refused", 8, middleware=[outer, inner])
    assert result.counts == {"buried": 1, "completed": 1}
    assert seen == ["request 7", "request 7", "request 8"]


def test_route_chooses_a_handler_or_buries_the_message(dsn: str) -> None:
    handled_by: list[str] = []

    class Routes:
        def __init__(self) -> None:
            self.odd = Handler(call=lambda message: handled_by.append("odd"))
            self.even = Handler(call=self._even, is_batch=True)

        def route(self, message: AsyncMessage) -> Handler:
            if message.payload == "unknown":
                raise Bury("unknown task")
            if message.payload == "broken" and message.attempt == 1:
                raise ZeroDivisionError
            return self.even if message.payload == "broken" or message.payload % 2 == 0 else self.odd

        async def _even(self, messages: list[AsyncMessage]) -> None:
            handled_by.extend(["even"] * len(messages))

    result = run_worker(dsn, Routes(), *range(10), "unknown", "broken")
    assert sorted(handled_by) == ["even"] * 6 + ["odd"] * 5
    assert result.counts == {"completed": 11, "buried": 1, "deferred": 1}
    assert result.dead_letters[0].error == "unknown task"


def test_async_and_plain_handlers_can_use_the_queue(dsn: str, queue: Queue) -> None:
    async def on_loop(message: AsyncMessage) -> None:
        if message.payload:
            await message.queue.enqueue("b", message.payload - 1)

    def in_thread(message: Message) -> None:
        if message.payload:
            message.queue.enqueue("b", message.payload - 1)

    assert run_worker(dsn, on_loop, 5).counts == {"completed": 6}
    assert run_worker(dsn, in_thread, 5).counts == {"completed": 6}

    async def with_a_blocking_queue() -> None:
        worker = Worker(queue, in_thread)
        serving = asyncio.create_task(worker.serve())
        await asyncio.to_thread(queue.enqueue, "a", 3)
        while worker.counts["completed"] < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        worker.stop()
        assert await serving == lonnymq.ExitCode.FINISHED

    asyncio.run(with_a_blocking_queue())
    assert queue.status().waiting == 0


def test_each_attempt_is_logged_and_only_failures_as_warnings(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(message: AsyncMessage) -> None:
        if message.payload == "bad":
            raise Bury("bad video")
        if message.payload == "flaky" and message.attempt == 1:
            raise OSError("disk full")

    with caplog.at_level(logging.DEBUG, "lonnymq.worker"):
        run_worker(dsn, handler_without_delay(handle, name="transcode"), "good", "bad", "flaky")
    lines = [record for record in caplog.records if hasattr(record, "outcome")]
    assert sorted((one.levelname, vars(one)["outcome"]) for one in lines) == [
        ("DEBUG", "completed"),
        ("DEBUG", "completed"),
        ("ERROR", "buried"),
        ("WARNING", "deferred"),
    ]
    [deferred] = [one for one in lines if vars(one)["outcome"] == "deferred"]
    fields = vars(deferred)
    assert fields["channel"] == "a"
    assert fields["handler"] == "transcode"
    assert fields["attempt"] == 1
    assert fields["took_ms"] >= 0
    assert "disk full" in deferred.getMessage()


def test_invalid_handlers_queues_and_settings_are_refused() -> None:
    def handle(message: Message) -> None: ...

    for make, argument in (
        (lambda: Worker("", 7), "handler"),
        (lambda: Worker(7, handle), "queue"),  # type: ignore[arg-type]
        (lambda: Worker(Queue(lambda: None), handle), "queue"),  # type: ignore[arg-type,return-value]
        (lambda: WorkerSettings(concurrency=0), "concurrency"),
        (lambda: WorkerSettings(lease_s=0.005), "lease_s"),
        (lambda: WorkerSettings(shutdown_s=-1), "shutdown_s"),
        (lambda: Handler(call=7), "call"),  # type: ignore[arg-type]
        (lambda: Handler(call=handle, timeout=0), "timeout"),
        (lambda: Handler(call=handle, timeout=timedelta(0)), "timeout"),
        (lambda: Handler(call=handle, max_attempts=0), "max_attempts"),
        (lambda: Handler(call=handle, retry=3), "retry"),  # type: ignore[arg-type]
        (lambda: Defer(-1), "delay"),
        (lambda: Worker("", handle, settings=WorkerSettings(processes=2)).run(), "processes"),
    ):
        with pytest.raises(lonnymq.InvalidArgument, match=f"^{argument} must be"):
            make()


def test_a_plain_handler_cannot_use_a_queue_with_an_asyncio_pool(dsn: str) -> None:
    def in_thread(message: Message) -> None:
        message.queue.enqueue("b", 1)

    async def connect() -> Any:
        import psycopg

        return await psycopg.AsyncConnection.connect(dsn, autocommit=True)

    async def scenario() -> None:
        async with AsyncQueue(connect) as queue:
            await queue.enqueue("a", 1)
            worker = Worker(queue, Handler(call=in_thread, max_attempts=1))
            serving = asyncio.create_task(worker.serve())
            while not worker.counts["buried"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            worker.stop()
            await serving
            [letter] = await queue.dead().list()
            assert "create the queue from a connection string" in (letter.error or "")

    asyncio.run(scenario())


def test_a_handler_that_cancels_its_task_cancels_no_other_handler(dsn: str) -> None:
    """A slot is one task for many messages: cancelling one of them must not affect the next."""

    async def on_loop(message: AsyncMessage) -> None:
        task = asyncio.current_task()
        assert task is not None
        match message.payload:
            case "at its end":
                task.cancel()
            case "after its end":
                asyncio.get_running_loop().call_later(0.05, task.cancel)
            case _:
                await asyncio.sleep(0)

    async def scenario() -> None:
        async with (
            AsyncQueue(dsn) as queue,
            running_worker(queue, Handler(call=on_loop), concurrency=1) as worker,
        ):
            for payload in ("at its end", "plain", "after its end"):
                await queue.enqueue("a", payload)
            await wait_until_drained(queue)
            await asyncio.sleep(0.2)
            for _ in range(3):
                await queue.enqueue("a", "plain")
            await wait_until_drained(queue)
        assert finished(worker) == {"completed": 6}

    asyncio.run(scenario())
