"""run_until_empty(): works what is due in the test's own process."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from lonnymq import (
    App,
    AsyncMessage,
    AsyncQueue,
    Bury,
    Defer,
    Handler,
    InvalidArgument,
    Message,
    Queue,
    Retry,
    current_message,
)
from lonnymq.testing import AttemptFailed, Clock, redirect_app, run_until_empty


def outcomes(attempts: Any) -> list[str]:
    return [attempt.outcome for attempt in attempts]


def test_due_messages_are_processed_in_order_and_later_ones_wait(lonnymq_queue: Queue) -> None:
    seen: list[Any] = []
    for number in range(3):
        lonnymq_queue.enqueue("a", number)
    lonnymq_queue.enqueue("a", "later", delay=60)
    attempts = run_until_empty(lambda message: seen.append(message.payload), queue=lonnymq_queue)
    assert seen == [0, 1, 2]
    assert outcomes(attempts) == ["completed"] * 3
    assert [attempt.message.payload for attempt in attempts] == [0, 1, 2]
    assert lonnymq_queue.status().waiting == 1
    assert run_until_empty(seen.append, queue=lonnymq_queue) == []


def test_messages_that_a_handler_enqueues_are_processed_too(lonnymq_queue: Queue) -> None:
    def countdown(message: Message) -> None:
        if message.payload:
            message.queue.enqueue("a", message.payload - 1)

    lonnymq_queue.enqueue("a", 5)
    assert len(run_until_empty(countdown, queue=lonnymq_queue)) == 6


def test_a_plain_handler_runs_in_the_tests_thread_without_a_loop(lonnymq_queue: Queue) -> None:
    def handle(message: Message) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert current_message().id == message.id
        assert asyncio.run(asyncio.sleep(0, "as in a thread of a worker")) is not None

    async def around(message: AsyncMessage, call: Any) -> None:
        before.append(message.payload)
        await call()

    before: list[Any] = []
    lonnymq_queue.enqueue("a", 1)
    assert len(run_until_empty(handle, queue=lonnymq_queue, middleware=[around])) == 1
    assert before == [1]


def test_an_async_handler_runs_on_a_loop(lonnymq_queue: Queue) -> None:
    async def handle(message: AsyncMessage) -> None:
        await asyncio.sleep(0)
        await message.queue.enqueue("b", message.payload + 1)

    lonnymq_queue.enqueue("a", 1)
    lonnymq_queue.channel("b").pause()
    assert len(run_until_empty(handle, queue=lonnymq_queue)) == 1
    assert lonnymq_queue.status().waiting == 1


def test_run_until_empty_is_awaited_on_an_async_queue(lonnymq_async_queue: AsyncQueue) -> None:
    threads: list[threading.Thread] = []

    def plain(message: Message) -> None:
        threads.append(threading.current_thread())
        if message.payload:
            message.queue.enqueue("a", message.payload - 1)

    loops: set[asyncio.AbstractEventLoop] = set()

    async def handle(message: AsyncMessage) -> None:
        loops.add(asyncio.get_running_loop())

    async def main() -> None:
        async with lonnymq_async_queue as queue:
            await queue.enqueue("a", 1)
            assert outcomes(await run_until_empty(handle, queue=queue)) == ["completed"]
            await queue.enqueue("a", 1)
            assert len(await run_until_empty(plain, queue=queue)) == 2
            assert threading.main_thread() not in threads
            assert loops == {asyncio.get_running_loop()}

    asyncio.run(main())


def test_a_blocking_queue_inside_a_loop_is_refused(lonnymq_queue: Queue) -> None:
    async def main() -> None:
        run_until_empty(print, queue=lonnymq_queue)

    with pytest.raises(InvalidArgument, match="queue must be an AsyncQueue while an event loop is running"):
        asyncio.run(main())


class Broken(Exception):
    pass


def fail(message: Message) -> None:
    raise Broken(message.payload)


def test_a_handlers_exception_is_raised_after_its_attempt_ended(
    lonnymq_queue: Queue, lonnymq_clock: Clock
) -> None:
    lonnymq_queue.enqueue("a", "why", max_attempts=2)
    with pytest.raises(Broken, match="why") as caught:
        run_until_empty(fail, queue=lonnymq_queue)
    assert "fail" in [entry.name for entry in caught.traceback]
    assert run_until_empty(fail, queue=lonnymq_queue) == []

    lonnymq_clock.advance(minutes=1)
    [attempt] = run_until_empty(fail, queue=lonnymq_queue, errors="keep")
    assert (attempt.outcome, attempt.message.attempt) == ("buried", 2)
    assert attempt.error is not None
    assert attempt.error.endswith("Broken: why")
    [letter] = lonnymq_queue.dead().list()
    assert letter.error == attempt.error


def test_defer_and_bury_are_not_failures(lonnymq_queue: Queue) -> None:
    def decide(message: Message) -> None:
        if message.state is None:
            raise Defer(0, state={"tried": 1}, error="not yet")
        raise Bury("never")

    lonnymq_queue.enqueue("a", 1)
    attempts = run_until_empty(decide, queue=lonnymq_queue)
    assert [(one.outcome, one.error) for one in attempts] == [("deferred", "not yet"), ("buried", "never")]


def test_a_handler_that_times_out_is_a_failure(lonnymq_queue: Queue) -> None:
    async def linger(message: AsyncMessage) -> None:
        await asyncio.sleep(60)

    lonnymq_queue.enqueue("a", 1)
    with pytest.raises(AttemptFailed, match=r"message 1 of 'a' was deferred: (?s:.*)took longer than 0.05 s"):
        run_until_empty(Handler(call=linger, timeout=0.05), queue=lonnymq_queue)


def test_a_handler_may_end_its_message_itself(lonnymq_queue: Queue, lonnymq_dsn: str) -> None:
    def ship(message: Message) -> None:
        with psycopg.connect(lonnymq_dsn) as connection:
            message.complete(connection=connection)

    lonnymq_queue.enqueue("a", 1)
    assert outcomes(run_until_empty(ship, queue=lonnymq_queue)) == ["completed"]
    assert lonnymq_queue.status().leased == 0


def test_a_batch_handler_is_given_a_batch(lonnymq_queue: Queue) -> None:
    sizes: list[int] = []
    for number in range(5):
        lonnymq_queue.enqueue("a", number)
    handler = Handler(call=lambda messages: sizes.append(len(messages)), is_batch=True)
    assert len(run_until_empty(handler, queue=lonnymq_queue)) == 5
    assert sizes == [5]


def test_an_endless_run_is_stopped(lonnymq_queue: Queue) -> None:
    lonnymq_queue.enqueue("a", 1)
    with pytest.raises(AttemptFailed, match="not empty after 20 attempts"):
        run_until_empty(lambda message: message.queue.enqueue("a", 1), queue=lonnymq_queue, limit=20)


def test_a_day_of_retries_takes_no_real_time(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    lonnymq_queue.enqueue("a", 1, max_attempts=12)
    handler = Handler(call=fail, retry=Retry(first_s=30, factor=2, jitter=0))
    began = lonnymq_clock.now()
    attempts = run_until_empty(
        handler,
        queue=lonnymq_queue,
        clock=lonnymq_clock,
        until=began.replace(year=began.year + 1),
        errors="keep",
    )
    assert outcomes(attempts) == ["deferred"] * 11 + ["buried"]
    minutes = [(one.message.leased_at - began).total_seconds() / 60 for one in attempts[:7]]
    assert minutes == pytest.approx([0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5], abs=0.4)
    assert lonnymq_clock.now() - began >= timedelta(days=1)


def test_a_rate_limit_uses_the_moved_clock(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    lonnymq_queue.channel("slow").set(release_interval_ms=600_000)
    for number in range(4):
        lonnymq_queue.enqueue("slow", number)
    assert len(run_until_empty(print, queue=lonnymq_queue)) == 1
    lonnymq_clock.advance(minutes=11)
    assert len(run_until_empty(print, queue=lonnymq_queue)) == 1
    began = lonnymq_clock.now()
    attempts = run_until_empty(
        print, queue=lonnymq_queue, clock=lonnymq_clock, until=began.replace(year=2100)
    )
    assert len(attempts) == 2


def test_invalid_arguments_are_named(lonnymq_queue: Queue, lonnymq_clock: Clock) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"queue": None}, "queue must be a Queue or an AsyncQueue"),
        ({"errors": "ignore"}, 'errors must be "raise" or "keep"'),
        ({"until": lonnymq_clock.now()}, "until needs a clock"),
        ({"until": 5, "clock": lonnymq_clock, "limit": 0}, "limit must be a whole number"),
        ({"until": "noon", "clock": lonnymq_clock}, "until must be a timedelta"),
    ]
    for options, message in wrong:
        with pytest.raises(InvalidArgument, match=message):
            run_until_empty(print, **{"queue": lonnymq_queue, **options})
    with pytest.raises(InvalidArgument, match="handler must be a function"):
        run_until_empty(7, queue=lonnymq_queue)


def test_an_app_can_be_redirected_during_a_test(lonnymq_queue: Queue) -> None:
    app = App(Queue("postgresql://nobody@127.0.0.1:1/production"))
    seen: list[int] = []

    @app.task()
    def note(number: int) -> None:
        seen.append(number)

    with redirect_app(app, lonnymq_queue):
        note.enqueue("a", 7)
        assert outcomes(run_until_empty(app)) == ["completed"]
        lonnymq_queue.enqueue("a", {"task": "unknown", "arguments": {}})
        with pytest.raises(AttemptFailed, match="was buried: unknown task 'unknown'"):
            run_until_empty(app)
    assert seen == [7]
    assert app.queue is not lonnymq_queue
    with pytest.raises(InvalidArgument, match="queue must be of the same class"):
        with redirect_app(app, AsyncQueue("")):
            pass
