"""Producers notify a worker only while it waits for messages."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from lonnymq import AsyncMessage, AsyncQueue
from tests.conftest import Connect
from tests.worker.workers import running_worker, wait_until, wait_until_drained

WORKERS, SLOTS = 3, 2


@pytest.fixture
def listener(connect: Connect) -> psycopg.Connection[Any]:
    connection = connect()
    row = connection.execute("select queue_event()").fetchone()
    assert row is not None
    connection.execute(sql.SQL("listen {}").format(sql.Identifier(row[0])))
    return connection


def test_a_busy_fleet_causes_no_notifications(
    dsn: str, connect: Connect, listener: psycopg.Connection[Any]
) -> None:
    release = asyncio.Event()
    started: list[int] = []

    async def handle(message: AsyncMessage) -> None:
        started.append(message.id)
        await release.wait()

    watcher = connect()

    def sleepers() -> int:
        row = watcher.execute("select count(*) from sleeper").fetchone()
        assert row is not None
        return int(row[0])

    def notifications() -> int:
        # Any call fetches what the server has sent.
        listener.execute("select 1")
        return len(list(listener.notifies(timeout=0)))

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue, AsyncExitStack() as stack:
            for _ in range(WORKERS):
                await stack.enter_async_context(running_worker(queue, handle, concurrency=SLOTS))
            await wait_until(lambda: sleepers() == WORKERS, "all workers wait")
            await queue.enqueue("a", 0)
            assert notifications() == 1
            for n in range(1, WORKERS * SLOTS):
                await queue.enqueue("a", n)
            await wait_until(lambda: len(started) == WORKERS * SLOTS, "all slots are busy")
            # Long before the registrations expire, and although no worker makes a dequeue call.
            await wait_until(lambda: sleepers() == 0, "all registrations are withdrawn")
            notifications()
            for n in range(20):
                await queue.enqueue(f"c{n}", n)
            assert notifications() == 0
            release.set()
            await wait_until_drained(queue)
            await wait_until(lambda: sleepers() == WORKERS, "all workers wait again")
            await queue.enqueue("a", 0)
            assert notifications() == 1
            await wait_until_drained(queue)

    asyncio.run(scenario())
    assert len(started) == len(set(started)) == WORKERS * SLOTS + 21
