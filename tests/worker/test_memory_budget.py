"""Messages with large contents wait for the memory that others take, and do not go back and forth."""

import asyncio

import pytest

from lonnymq import AsyncMessage, AsyncQueue
from lonnymq.worker import memory_budget
from tests.worker.workers import finished, running_worker, wait_until, wait_until_drained

LARGE = "x" * 60_000


def test_a_message_that_finds_no_memory_waits_for_it(dsn: str) -> None:
    """It starts as soon as there is memory, and does not go back and forth meanwhile."""
    started: list[str] = []
    release = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.append(message.channel)
        if message.channel == "first":
            await release.wait()

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            async with running_worker(queue, handle, max_bytes=100_000) as worker:
                await queue.enqueue("first", LARGE)
                await wait_until(lambda: started == ["first"], "the first has started")
                await queue.enqueue("second", LARGE)
                for n in range(20):
                    await queue.enqueue("small", n)
                await wait_until(lambda: len(started) == 21, "small messages have started")
                assert "second" not in started
                release.set()
                await wait_until_drained(queue)
            assert finished(worker) == {"completed": 22}

    asyncio.run(scenario())


def test_a_message_that_finds_no_memory_for_long_goes_to_another_worker(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_budget, "MAX_WAIT_S", 0.3)
    started: list[str] = []
    release = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.append(message.channel)
        if message.channel == "first":
            await release.wait()

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            async with running_worker(queue, handle, max_bytes=100_000) as full:
                await queue.enqueue("first", LARGE)
                await wait_until(lambda: started, "the first has started")
                await queue.enqueue("second", LARGE)
                await wait_until(lambda: full.counts["given_back"], "the second was given back")
                async with running_worker(queue, handle):
                    await wait_until(lambda: started == ["first", "second"], "the second has started")
                release.set()
                await wait_until_drained(queue)

    asyncio.run(scenario())
