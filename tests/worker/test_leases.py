"""How leases are extended, and what happens when they are lost."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import AsyncMessage, AsyncQueue, Handler, Message, NewMessage
from tests.conftest import Connect
from tests.worker.workers import (
    TIMEOUT_S,
    eventually,
    finished,
    handler_without_delay,
    running_worker,
    wait_until_drained,
)


def calls_of(connect: Connect, function: str) -> int:
    found = connect().execute(
        "select coalesce(sum(calls), 0)::integer from pg_stat_user_functions where funcname = %s", [function]
    )
    row = found.fetchone()
    assert row is not None
    return int(row[0])


def test_one_heartbeat_call_extends_all_leases(dsn: str, connect: Connect) -> None:
    name = conninfo.conninfo_to_dict(dsn)["dbname"]
    connect().execute(
        sql.SQL("alter database {} set track_functions = 'pl'").format(sql.Identifier(str(name)))
    )

    class Both:
        """Runs half of the messages in threads and half on the loop, all for longer than a lease."""

        def route(self, message: AsyncMessage) -> Handler:
            return Handler(call=self.in_thread if message.payload % 2 else self.on_loop)

        def in_thread(self, message: Message) -> None:
            time.sleep(6)

        async def on_loop(self, message: AsyncMessage) -> None:
            await asyncio.sleep(6)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(40)])
            async with running_worker(queue, Both(), concurrency=40, lease_s=4) as worker:
                await wait_until_drained(queue)
            assert finished(worker) == {"completed": 40}

    asyncio.run(scenario())
    heartbeats = eventually(lambda: calls_of(connect, "message_heartbeat"))
    assert 3 <= heartbeats <= 20
    # The handlers end at about the same time, and their messages are completed together.
    assert calls_of(connect, "message_complete") <= 20


@asynccontextmanager
async def one_running(dsn: str, handler: Any, **settings: Any) -> AsyncIterator[tuple[Any, AsyncQueue]]:
    """Run a worker that processes one message."""
    async with AsyncQueue(dsn) as queue:
        await queue.enqueue("a", 1, max_attempts=5)
        async with running_worker(queue, handler, lease_s=1.5, concurrency=1, **settings) as worker:
            async with asyncio.timeout(TIMEOUT_S):
                while not (await queue.status()).leased:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            yield worker, queue


async def wait_for_count(worker: Any, outcome: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not worker.counts[outcome]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def steal(connect: Connect) -> int:
    """Let the lease expire, and lease the message as another worker."""
    thief = connect()
    with thief.transaction():  # so that no heartbeat comes in between
        thief.execute("update lease set unlock_at = 0")
        row = thief.execute("select message_id, token from message_dequeue(1, 60000, 'thief')").fetchone()
    assert row is not None
    assert row[0] is not None
    return int(row[1])


def test_a_lost_lease_cancels_an_async_handler_without_acknowledgement(
    dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []

    async def on_loop(message: AsyncMessage) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert message.is_lost
            ended.append("cancelled")
            raise

    async def scenario() -> None:
        async with one_running(dsn, handler_without_delay(on_loop)) as (worker, queue):
            token = await asyncio.to_thread(steal, connect)
            await wait_for_count(worker, "lease_lost")
            async with asyncio.timeout(TIMEOUT_S):
                while not ended:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            leases = connect().execute("select token, worker from lease").fetchall()
            assert leases == [(token, "thief")]
            connect().execute("select message_complete(array[message_id], array[token]) from lease")
            await wait_until_drained(queue)
        assert finished(worker) == {"lease_lost": 1}

    asyncio.run(scenario())
    assert "lease_lost message" in caplog.text


def test_a_handler_in_a_thread_sees_that_its_lease_is_lost(dsn: str, connect: Connect) -> None:
    noticed = threading.Event()

    def in_thread(message: Message) -> None:
        until = time.monotonic() + TIMEOUT_S
        while not message.is_lost and time.monotonic() < until:
            time.sleep(0.01)
        if message.is_lost:
            noticed.set()

    async def scenario() -> None:
        async with one_running(dsn, handler_without_delay(in_thread)) as (worker, queue):
            await asyncio.to_thread(steal, connect)
            assert await asyncio.to_thread(noticed.wait, TIMEOUT_S)
            connect().execute("select message_complete(array[message_id], array[token]) from lease")
            await wait_until_drained(queue)
        assert finished(worker) == {"lease_lost": 1}

    asyncio.run(scenario())


def test_cancelling_a_message_stops_its_handler_and_ends_its_lease(dsn: str, connect: Connect) -> None:
    async def on_loop(message: AsyncMessage) -> None:
        await asyncio.sleep(60)

    def in_thread(message: Message) -> None:
        until = time.monotonic() + TIMEOUT_S
        while not message.is_lost and time.monotonic() < until:
            time.sleep(0.01)

    async def scenario(handler: Any) -> None:
        async with one_running(dsn, handler_without_delay(handler)) as (worker, queue):
            ids = [row[0] for row in connect().execute("select id from message").fetchall()]
            assert await queue.cancel(ids) == ["cancelled"]
            await wait_until_drained(queue)
        assert worker.counts["cancelled"] >= 1
        assert set(worker.counts) == {"cancelled"}

    for handler in (on_loop, in_thread):
        asyncio.run(scenario(handler))
    assert connect().execute("select count(*) from lease").fetchone() == (0,)


def test_a_handler_that_blocks_the_loop_is_logged_and_only_loses_its_lease(
    dsn: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease expires while the handler blocks, and only the worker that leases it next completes it."""
    attempts: list[int] = []
    started, taken = threading.Event(), threading.Event()

    async def blocks(message: AsyncMessage) -> None:
        attempts.append(message.attempt)
        started.set()
        assert taken.wait(TIMEOUT_S)
        time.sleep(1)  # noqa: ASYNC251 - on purpose

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("a", 1)
            async with running_worker(queue, handler_without_delay(blocks), lease_s=0.9) as worker:
                await asyncio.to_thread(take_over, connect, started, taken)
                await wait_for_count(worker, "lease_lost")
                await wait_until_drained(queue)
            assert finished(worker) == {"lease_lost": 1}

    asyncio.run(scenario())
    assert attempts == [1]
    assert "the event loop was blocked for" in caplog.text


def take_over(connect: Connect, started: threading.Event, taken: threading.Event) -> None:
    """Wait until the other worker's lease expires, lease the message, and complete it."""
    thief = connect()
    assert started.wait(TIMEOUT_S)

    def leased() -> Any:
        row = thief.execute("select message_id, token from message_dequeue(1, 60000, 'thief')").fetchone()
        return row if row is not None and row[0] is not None else None

    id_, token = eventually(leased)
    answer = thief.execute("select outcome from message_complete(array[%s], array[%s])", [id_, token])
    assert answer.fetchone() == ("completed",)
    taken.set()
