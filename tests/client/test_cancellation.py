"""A cancelled task loses no messages, and the client stays usable."""

import asyncio
import time
from collections.abc import Callable

import pytest

from lonnymq import AsyncQueue, CompleteOutcome, NewMessage
from tests.conftest import Connect

COMPLETED = CompleteOutcome.COMPLETED
Waits = Callable[[str, str], bool]


def test_a_cancelled_dequeue_gives_its_messages_back(dsn: str, connect: Connect, waits: Waits) -> None:
    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("a", 1)
            holder = connect()
            holder.execute("begin")
            holder.execute("lock table lease in access exclusive mode")
            task = asyncio.create_task(queue.dequeue())
            while not waits(dsn, "message_dequeue"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.sleep(0.05)
            holder.execute("rollback")
            with pytest.raises(asyncio.CancelledError):
                await task
            assert connect().execute("select count(*) from lease").fetchone() == (0,)
            message = (await queue.dequeue())[0]
            assert message.attempt == 1

    asyncio.run(scenario())


def test_a_dequeue_can_be_cancelled_at_any_moment(dsn: str, connect: Connect) -> None:
    async def scenario() -> int:
        done = 0
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(20)])
            for attempt in range(120):
                try:
                    async with asyncio.timeout((attempt % 12) * 0.0004):
                        batch = await queue.dequeue(wait=5)
                except TimeoutError:
                    continue
                done += (await queue.complete(batch)).count(COMPLETED)
            while batch := await queue.dequeue(20):
                done += (await queue.complete(batch)).count(COMPLETED)
        return done

    assert asyncio.run(scenario()) == 20
    row = connect().execute("select count(*), max(attempt) from lease").fetchone()
    assert row == (0, None)


def test_a_cancelled_wait_ends_at_once_and_can_be_repeated(dsn: str) -> None:
    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            for _ in range(3):
                began = time.monotonic()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await queue.dequeue(wait=60)
                assert time.monotonic() - began < 5
            task = asyncio.create_task(queue.dequeue(wait=60))
            await asyncio.sleep(0.1)
            created = await queue.enqueue("a", 1)
            assert [message.id for message in await task] == [created.id]

    asyncio.run(scenario())


def test_tasks_share_one_client(dsn: str) -> None:
    done: list[CompleteOutcome] = []

    async def work(queue: AsyncQueue) -> None:
        while len(done) < 100:
            done.extend(await queue.complete(await queue.dequeue(5, wait=0.3)))

    async def scenario() -> None:
        async with asyncio.timeout(60), AsyncQueue(dsn) as queue:
            workers = [asyncio.create_task(work(queue)) for _ in range(5)]
            for n in range(100):
                await queue.enqueue(f"c{n % 7}", n)
            await asyncio.gather(*workers)

    asyncio.run(scenario())
    assert done == [COMPLETED] * 100
