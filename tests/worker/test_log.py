"""What a worker logs and counts: one line and one count per attempt."""

import asyncio
import logging
import re
from typing import Any

import pytest

from lonnymq import AsyncMessage, AsyncQueue, Defer, Handler, Message, Queue, Retry
from tests.worker.workers import finished, run_worker, running_worker

RETRY = Retry(first_s=0.004, factor=1.0, jitter=0.0)


def lines(caplog: pytest.LogCaptureFixture, outcome: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if getattr(record, "outcome", "") == outcome]


def test_a_log_line_has_the_attempt_its_limit_and_the_next_delay(
    dsn: str, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    def transcode(message: Message) -> None:
        raise ValueError("no such video")

    def log_line(handler: Handler, outcome: str) -> str:
        caplog.clear()
        run_worker(dsn, handler, 1)
        return re.sub(r"message \d+|in \d+ ms: ", "#", lines(caplog, outcome)[-1].getMessage())

    limited = Handler(call=transcode, name="transcode", max_attempts=2, retry=RETRY)
    with caplog.at_level(logging.DEBUG, "lonnymq"):
        expected = "deferred # of 'a', attempt 1 of 2, next in 4 ms, by transcode #ValueError: no such video"
        assert log_line(limited, "deferred") == expected
        [first] = lines(caplog, "deferred")
        assert (vars(first)["max_attempts"], vars(first)["next_in_ms"]) == (2, 4)
        expected = "buried # of 'a', attempt 2 of 2, by transcode #ValueError: no such video"
        assert log_line(limited, "buried") == expected
        # The limit is that of the channel.
        queue.channel("a").set(max_attempts=3)
        expected = "deferred # of 'a', attempt 2 of 3, next in 4 ms, by transcode #ValueError: no such video"
        assert log_line(Handler(call=transcode, name="transcode", retry=RETRY), "deferred") == expected


@pytest.mark.parametrize(
    ("delay", "delay_text"),
    [(None, "next in 0 ms"), (0.25, "next in 250 ms"), (4, "next in 4 s"), (7200, "next in 7200 s")],
)
def test_the_log_line_of_a_deferral_has_its_delay(
    dsn: str, caplog: pytest.LogCaptureFixture, delay: float | None, delay_text: str
) -> None:
    async def handle(message: AsyncMessage) -> None:
        raise Defer(delay)

    async def scenario() -> None:
        async with (
            AsyncQueue(dsn) as queue,
            running_worker(queue, Handler(call=handle, max_attempts=2)) as worker,
        ):
            await queue.enqueue("a", 1)
            async with asyncio.timeout(60):
                while not worker.counts["deferred"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    with caplog.at_level(logging.DEBUG, "lonnymq"):
        asyncio.run(scenario())
    assert f"attempt 1 of 2, {delay_text}, by " in lines(caplog, "deferred")[0].getMessage()


def test_a_message_cancelled_while_it_runs_is_logged_once(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    started: list[int] = []

    async def on_loop(message: AsyncMessage) -> None:
        started.append(message.id)
        await asyncio.sleep(60)

    async def scenario() -> Any:
        async with AsyncQueue(dsn) as queue:
            ids = [(await queue.enqueue("a", n)).id or 0 for n in range(3)]
            async with running_worker(queue, on_loop, lease_s=0.6) as worker, asyncio.timeout(60):
                while len(started) < 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await queue.cancel(ids)
                while (await queue.status()).leased:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            return finished(worker)

    with caplog.at_level(logging.DEBUG, "lonnymq"):
        assert asyncio.run(scenario()) == {"cancelled": 3}
    assert len(lines(caplog, "cancelled")) == 3


def test_control_characters_in_a_log_line_are_escaped(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    async def odd(message: AsyncMessage) -> None:
        raise RuntimeError("a\x1b[31mb\x9bc\u202ed" + "e" * 5_000)

    odd.__qualname__ = "odd\x1b"

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("\u202etenant", 1)
            async with (
                running_worker(queue, Handler(call=odd, max_attempts=1)) as worker,
                asyncio.timeout(60),
            ):
                while not worker.counts["buried"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    asyncio.run(scenario())
    [record] = lines(caplog, "buried")
    text = record.getMessage()
    assert text.isprintable()
    assert len(text) < 600
    assert "RuntimeError: a\\x1b[31mb\\x9bc\\u202ed" in text
    assert r"of '\u202etenant'" in text
    assert "by odd\\x1b in" in text
