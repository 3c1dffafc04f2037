"""Messages of one tenant do not affect those of another in the same worker."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, conninfo
from psycopg_pool import AsyncConnectionPool

from lonnymq import (
    AsyncMessage,
    AsyncQueue,
    ClientSettings,
    Defer,
    Handler,
    Message,
    NewMessage,
    Queue,
    Retry,
    Worker,
)
from lonnymq.worker import timeouts
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.worker.conftest import StartWorker
from tests.worker.workers import (
    TIMEOUT_S,
    WorkerProcess,
    finished,
    handler_without_delay,
    running_worker,
    wait_until,
    wait_until_drained,
)

MEGABYTE = 1_000_000


@pytest.mark.parametrize("is_async", [True, False])
def test_a_busy_worker_gives_back_messages_that_it_cannot_start(
    dsn: str, connect: Connect, is_async: bool
) -> None:
    """Handlers that hang keep only their own messages."""
    release = threading.Event()
    started: list[int] = []
    quick: dict[str, list[int]] = {}

    async def hangs(message: AsyncMessage) -> None:
        started.append(message.id)
        while not release.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def hangs_in_thread(message: Message) -> None:
        started.append(message.id)
        release.wait(TIMEOUT_S)

    async def works(message: AsyncMessage) -> None:
        assert (message.attempt, message.suspicion) == (1, 0)
        quick.setdefault(message.channel, []).append(message.id)

    async def leased() -> int:
        row = connect().execute("select count(*) from lease where worker like 'full:%'").fetchone()
        assert row is not None
        return int(row[0])

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            created = await queue.enqueue_many(
                [NewMessage(channel=f"c{n % 3}", payload=n) for n in range(12)]
            )
            handler = hangs if is_async else hangs_in_thread
            async with running_worker(queue, handler, concurrency=2, prefetch=8, name="full") as full:
                await wait_until(lambda: len(started) == 2, "two have started")

                async def has_given_back() -> bool:
                    return full.counts["given_back"] > 0 and await leased() == 2

                await wait_until(has_given_back, "waiting messages were given back")
                given_back = full.counts["given_back"]
                # From now on it leases only messages that it can start.
                for _ in range(30):
                    assert await leased() == 2
                    await asyncio.sleep(0.01)
                async with running_worker(queue, works):
                    await wait_until(
                        lambda: sum(map(len, quick.values())) == 10, "another worker has processed the others"
                    )
                # They have kept their order within their channels.
                assert sorted(id_ for ids in quick.values() for id_ in ids) == sorted(
                    {one.id or 0 for one in created} - set(started)
                )
                assert all(ids == sorted(ids) for ids in quick.values())
                assert full.counts == {"given_back": given_back}
                release.set()
                await wait_until_drained(queue)
            assert full.counts["completed"] == 2

    asyncio.run(scenario())


def test_a_worker_leases_no_more_than_it_can_start_after_a_pause(dsn: str, connect: Connect) -> None:
    """Fast messages make it lease many ahead. After a pause, the next ones may be slow."""
    release = asyncio.Event()
    started: set[int] = set()

    async def handle(message: AsyncMessage) -> None:
        if message.payload == "slow":
            started.add(message.id)
            await release.wait()

    def count(table: str) -> int:
        row = connect().execute(f"select count(*) from {table}").fetchone()
        assert row is not None
        return int(row[0])

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload="fast") for _ in range(3_000)])
            async with running_worker(queue, handle) as worker:
                await wait_until_drained(queue)
                await wait_until(lambda: count("sleeper") == 1, "the worker waits")
                await asyncio.sleep(0.2)
                await queue.enqueue_many([NewMessage(channel="b", payload="slow") for _ in range(300)])
                await wait_until(lambda: len(started) == 4, "every slot has one")
                for _ in range(20):
                    assert count("lease") == 4
                    await asyncio.sleep(0.01)
                release.set()
                await wait_until_drained(queue)
            # A process that was stopped for 100 ms gives back what waits, and leases it again.
            assert worker.counts["completed"] == 3_300

    asyncio.run(scenario())


def test_large_contents_stay_within_the_memory_budget(dsn: str) -> None:
    running: set[int] = set()
    most = 0

    async def handle(message: AsyncMessage) -> None:
        nonlocal most
        running.add(message.id)
        most = max(most, len(running))
        assert len(message.payload) == MEGABYTE
        await asyncio.sleep(0.02)
        running.remove(message.id)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            for n in range(12):
                await queue.enqueue(f"c{n % 3}", "x" * MEGABYTE)
            async with running_worker(queue, handle, concurrency=8, max_bytes=int(2.5 * MEGABYTE)) as worker:
                await wait_until_drained(queue)
            assert worker.counts["completed"] == 12
            assert worker.counts["deferred"] == worker.counts["lease_lost"] == 0

    asyncio.run(scenario())
    assert most <= 2


@pytest.mark.slow
def test_memory_is_bounded_by_max_bytes(queue: Queue, start_worker: StartWorker) -> None:
    """Forty contents of 8 MB and ten slots: without a bound they would take at least 240 MB at a time."""

    def peak_mb(worker: WorkerProcess) -> int:
        status = Path(f"/proc/{worker.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    worker = start_worker(concurrency=10, prefetch=None, max_bytes=16 * MEGABYTE)
    created = [queue.enqueue("small", {"do": "sleep", "seconds": 0})]
    worker.wait_for("end")
    before_mb = peak_mb(worker)
    padding = "x" * (8 * MEGABYTE)
    created += [queue.enqueue("a", {"do": "sleep", "seconds": 0.1, "padding": padding}) for _ in range(40)]
    worker.wait_for_ids("end", [one.id or 0 for one in created])
    assert peak_mb(worker) - before_mb < 130


def test_a_message_larger_than_max_bytes_runs_alone(dsn: str) -> None:
    running: list[int] = []
    concurrent: dict[int, int] = {}

    async def handle(message: AsyncMessage) -> None:
        running.append(message.id)
        size = len(message.payload)
        for _ in range(5):
            concurrent[size] = max(concurrent.get(size, 0), len(running))
            await asyncio.sleep(0.01)
        running.remove(message.id)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            for n in range(20):
                await queue.enqueue(f"small-{n % 3}", "small")
                if n % 5 == 2:
                    await queue.enqueue("large", "x" * MEGABYTE)
            async with running_worker(queue, handle, concurrency=4, max_bytes=MEGABYTE // 2) as worker:
                await wait_until_drained(queue)
            assert worker.counts["completed"] == 24

    asyncio.run(scenario())
    assert concurrent[MEGABYTE] == 1
    assert concurrent[5] > 1


def test_large_contents_over_a_slow_connection_spend_no_extra_attempt(dsn: str, connect: Connect) -> None:
    """Reading all contents takes longer than a lease; each message starts as soon as its own is read."""
    large: list[tuple[int, int]] = []
    small: list[float] = []

    async def handle(message: AsyncMessage) -> None:
        if message.payload == "small":
            small.append(time.monotonic())
        else:
            large.append((message.attempt, message.suspicion))

    async def scenario() -> None:
        with Proxy(dsn) as proxy:
            async with AsyncQueue(dsn) as queue:
                await queue.enqueue_many(
                    [NewMessage(channel="large", payload="x" * 400_000) for _ in range(8)]
                )
                proxy.bytes_per_s = 400_000.0
                async with running_worker(proxy.dsn, handle, lease_s=5, call_timeout_s=2.0) as worker:
                    began = time.monotonic()
                    for _ in range(8):
                        await queue.enqueue("small", "small")
                        await asyncio.sleep(0.5)
                    await wait_until_drained(queue)
                    took_s = time.monotonic() - began
                assert worker.counts["completed"] == 16
                assert worker.counts["lease_lost"] == worker.counts["buried"] == 0
                assert took_s > 6

    asyncio.run(scenario())
    assert large == [(1, 0)] * 8
    assert len(small) == 8


def test_a_client_with_a_slow_connection_gets_what_it_can_read_in_time(dsn: str) -> None:
    async def scenario() -> None:
        with Proxy(dsn) as proxy:
            async with AsyncQueue(dsn) as producer, AsyncQueue(proxy.dsn) as queue:
                for _ in range(6):
                    await producer.enqueue("a", b"x" * 1_500_000)
                assert (await queue.status()).waiting == 6
                proxy.bytes_per_s = 2_000_000.0
                batch = await queue.dequeue(6, lease_s=6)
                assert 1 <= len(batch) < 6
                assert all(len(message.content) == 1_500_000 for message in batch)
                # The others wait for the next dequeue, and have spent no attempt.
                assert (await producer.status()).leased == len(batch)
                assert [one.attempts for one in await producer.peek("a")] == [0] * (6 - len(batch))
                assert await queue.complete(batch) == ["completed"] * len(batch)

    asyncio.run(scenario())


@pytest.mark.parametrize("is_pool", [True, False])
def test_handlers_that_exhaust_a_shared_pool_lose_no_leases(
    dsn: str, connect: Connect, is_pool: bool
) -> None:
    """Twelve handlers wait for a locked key on connections of the worker's queue, for longer than a lease."""
    holder = connect(autocommit=False)
    holder.execute("select message_create('b', 'x', p_key => 'k')")

    async def waits(message: AsyncMessage) -> None:
        await message.queue.enqueue("b", 1, key="k")
        assert message.attempt == 1

    async def scenario(queue: AsyncQueue) -> None:
        await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(12)])
        async with running_worker(queue, waits, concurrency=12, lease_s=1.5) as worker:
            await wait_until(lambda: blocked(connect) == 3, "all connections of the pool are waiting")
            await asyncio.sleep(4)
            assert worker.counts.total() == 0
            await asyncio.to_thread(holder.rollback)
            await wait_until(lambda: worker.counts["completed"] >= 12, "all are completed")
        assert worker.counts["lease_lost"] == 0

    async def either() -> None:
        if is_pool:
            pool: Any = AsyncConnectionPool(
                dsn, kwargs={"autocommit": True}, min_size=1, max_size=3, open=False
            )
            async with pool, AsyncQueue(pool) as queue:
                await scenario(queue)
        else:
            async with AsyncQueue(dsn, settings=ClientSettings(pool_max_size=3)) as queue:
                await scenario(queue)

    asyncio.run(either())


def test_a_connection_that_a_pool_cannot_configure_is_closed(dsn: str) -> None:
    opened: list[AsyncConnection[Any]] = []

    async def configure(connection: AsyncConnection[Any]) -> None:
        opened.append(connection)
        await connection.execute("set search_path to")

    async def scenario() -> None:
        pool: Any = AsyncConnectionPool(dsn, configure=configure, min_size=0, max_size=1, open=False)
        worker = Worker(AsyncQueue(pool), ignore)
        serving = asyncio.create_task(worker.serve())
        await wait_until(lambda: len(opened) >= 3, "the worker has tried again")
        worker.stop()
        await serving
        assert all(connection.closed for connection in opened)

    async def ignore(message: AsyncMessage) -> None:
        raise AssertionError

    asyncio.run(scenario())


def blocked(connect: Connect) -> int:
    found = connect().execute(
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    )
    row = found.fetchone()
    assert row is not None
    return int(row[0])


def test_a_call_interrupted_while_sending_does_not_stop_the_worker(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stalls in the middle of a large state, for longer than the timeout of the call."""
    monkeypatch.setattr(timeouts, "SLOWEST_BYTES_PER_S", 4 * MEGABYTE)
    states: list[int] = []

    async def handle(message: AsyncMessage) -> None:
        states.append(len(message.state or ""))
        if message.payload == "large" and message.state is None:
            proxy.stall_open_connections()
            raise Defer(state="y" * (8 * MEGABYTE))

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("a", "large")
            async with running_worker(proxy.dsn, handle, lease_s=60, call_timeout_s=0.5) as worker:
                await wait_until(lambda: len(states) == 1, "the first attempt has started")
                await queue.enqueue("b", "small")
                await wait_until(
                    lambda: len(states) == 3, "both were processed, the large one with its state"
                )
                await wait_until_drained(queue)
            assert worker.counts["completed"] == 2

    with Proxy(dsn) as proxy:
        asyncio.run(scenario())
    assert sorted(states) == [0, 0, 8 * MEGABYTE]


def test_a_handler_that_timed_out_in_a_thread_does_not_delay_shutdown(dsn: str) -> None:
    release = threading.Event()

    def hangs(message: Message) -> None:
        release.wait(TIMEOUT_S)

    async def scenario() -> float:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("a", 1)
            async with running_worker(
                queue, handler_without_delay(hangs, timeout=0.1, max_attempts=1), shutdown_s=TIMEOUT_S
            ) as worker:
                await wait_until(lambda: worker.counts["buried"] == 1, "it has timed out")
                began = time.monotonic()
            return time.monotonic() - began

    took_s = asyncio.run(scenario())
    release.set()
    assert took_s < 20


def test_a_message_cancelled_while_it_runs_is_counted_once(dsn: str) -> None:
    started = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.set()
        await asyncio.sleep(TIMEOUT_S)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            created = await queue.enqueue("a", 1)
            async with running_worker(queue, handle, lease_s=0.6) as worker:
                await started.wait()
                await queue.cancel([created.id or 0])
                await wait_until_drained(queue)
            assert finished(worker) == {"cancelled": 1}

    asyncio.run(scenario())


def test_a_locked_lease_does_not_delay_other_acknowledgements(dsn: str) -> None:
    """A handler in a thread completes its message, keeps the transaction open, and times out."""
    release = threading.Event()
    ended = 0

    def holds(message: Message) -> None:
        with psycopg.connect(dsn) as connection:
            message.complete(connection=connection)
            release.wait(TIMEOUT_S)

    async def quick(message: AsyncMessage) -> None:
        nonlocal ended
        ended += 1

    class Both:
        def route(self, message: AsyncMessage) -> Handler:
            is_holder = message.channel == "holder"
            return Handler(call=holds, timeout=0.2) if is_holder else Handler(call=quick)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.channel("capped").set(max_concurrency=1)
            await queue.enqueue("holder", 1)
            async with running_worker(queue, Both()) as worker:
                await asyncio.sleep(1)
                await queue.enqueue_many([NewMessage(channel="capped", payload=n) for n in range(100)])
                # At most one at a time, so each is acknowledged before the next is leased.
                began = time.monotonic()
                await wait_until(lambda: ended == 100, "the others are processed")
                took_s = time.monotonic() - began
                release.set()
                await wait_until_drained(queue)
            # If each of them waited a second for the busy one, this would take 100 s.
            assert took_s < 50
            assert worker.counts["completed"] == 101

    asyncio.run(scenario())


def test_a_thread_whose_result_is_not_awaited_gets_no_other_job(dsn: str, queue: Queue) -> None:
    """Middleware with a timeout of its own leaves busy threads behind."""
    release = threading.Event()
    called: list[Any] = []

    def handle(message: Message) -> None:
        called.append(message.payload)
        if message.payload == "hang":
            release.wait(TIMEOUT_S)

    async def limited(message: AsyncMessage, call: Any) -> None:
        async with asyncio.timeout(0.3):
            await call()

    async def scenario() -> None:
        handler = Handler(call=handle, retry=Retry(first_s=1000))
        async with (
            AsyncQueue(dsn) as client,
            running_worker(client, handler, [limited], concurrency=2) as worker,
        ):
            for _ in range(2):
                await client.enqueue("bad", "hang")
            await wait_until(lambda: worker.counts["deferred"] == 2, "both have timed out")
            for n in range(10):
                await client.enqueue("good", n, max_attempts=1)
            await wait_until(lambda: worker.counts["completed"] == 10, "the others are processed")
        release.set()

    asyncio.run(scenario())
    assert queue.dead("good").list() == []
    queue.cancel([one.id for one in queue.peek("bad")])


def test_states_count_toward_the_memory_budget(dsn: str) -> None:
    """No more messages are fetched while large states of ended attempts wait to be sent."""
    started = 0

    async def handle(message: AsyncMessage) -> None:
        nonlocal started
        if message.state is None:
            started += 1
            raise Defer(state="y" * MEGABYTE)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(40)])
            with Proxy(dsn) as proxy:
                async with running_worker(proxy.dsn, handle, concurrency=4, max_bytes=4 * MEGABYTE) as worker:
                    await wait_until(lambda: started >= 4, "some have started")
                    proxy.stall()
                    await asyncio.sleep(1)
                    assert started <= 12
                    proxy.abandon_open_connections()
                    await wait_until(lambda: worker.counts["completed"] >= 40, "all are processed")

    asyncio.run(scenario())


def test_a_content_of_almost_max_bytes_is_not_starved_by_smaller_ones(dsn: str) -> None:
    started: list[int] = []
    is_over = False

    async def handle(message: AsyncMessage) -> None:
        size = len(message.payload)
        started.append(size)
        await asyncio.sleep(0.2 + message.id % 7 / 20)
        if not is_over and size < MEGABYTE:
            await message.queue.enqueue("small", message.payload)

    async def scenario() -> None:
        nonlocal is_over
        async with AsyncQueue(dsn) as queue:
            for _ in range(8):
                await queue.enqueue("small", "x" * 110_000)
            async with running_worker(queue, handle, concurrency=10, max_bytes=MEGABYTE + 100_000):
                await wait_until(lambda: len(started) > 8, "small messages are flowing")
                await queue.enqueue("large", "x" * MEGABYTE)
                await wait_until(lambda: MEGABYTE in started, "the large message has started")
                is_over = True
                await wait_until_drained(queue)

    asyncio.run(scenario())
    assert started.count(MEGABYTE) == 1


def test_handlers_that_use_all_threads_of_the_loop_lose_no_leases(dsn: str) -> None:
    """The driver resolves host names in these threads; heartbeats must still be able to reconnect."""
    release = threading.Event()
    started = 0

    async def handle(message: AsyncMessage) -> None:
        nonlocal started
        started += 1
        await asyncio.to_thread(release.wait, TIMEOUT_S)

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(6)])
            by_name = conninfo.make_conninfo(proxy.dsn, host="localhost")
            async with running_worker(by_name, handle, concurrency=6, lease_s=2) as worker:
                await wait_until(lambda: started == 6, "all threads are busy")
                proxy.reset_connections()
                await asyncio.sleep(5)
                assert not finished(worker)
                release.set()
                await wait_until_drained(queue)
            assert finished(worker) == {"completed": 6}

    with Proxy(dsn) as proxy:
        asyncio.run(scenario())
