"""The order in which messages start, although some of them go back to the queue before they have started."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from psycopg import AsyncConnection

from lonnymq import AsyncMessage, AsyncQueue, ExitCode, NewMessage, Queue
from lonnymq.worker import give_backs, inventory
from tests.conftest import Connect
from tests.proxy import Proxy
from tests.worker.conftest import StartWorker
from tests.worker.workers import (
    TIMEOUT_S,
    WorkerProcess,
    eventually,
    is_drained,
    running_worker,
    wait_until,
    wait_until_drained,
)

LARGE = "x" * 60_000


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch nothing until the queue has taken back what was given back, even if this machine is slow."""
    monkeypatch.setattr(give_backs, "MAX_WAIT_S", TIMEOUT_S)


class Bursts:
    """Enqueues quick messages, which a worker leases ahead, and slow ones, behind which they are late."""

    def __init__(self, queue: AsyncQueue, seed: int, padding: str = "") -> None:
        self.random = random.Random(seed)
        self.started: dict[str, list[int]] = {f"c{n}": [] for n in range(3)}
        self._queue = queue
        self._padding = padding
        self._counts = dict.fromkeys(self.started, 0)

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    async def enqueue(self, rounds: int, quick: int) -> None:
        for _ in range(rounds):
            await self._put(*[0.001] * quick)
            await asyncio.sleep(self.random.uniform(0.0, 0.1))
            await self._put(*self.random.choices([0.12, 0.2, 0.3], k=self.random.randint(1, 4)))
            await asyncio.sleep(self.random.uniform(0.0, 0.1))
            await self._put(*[0.001] * self.random.randint(1, quick))
            await asyncio.sleep(self.random.uniform(0.0, 0.3))

    async def handle(self, message: AsyncMessage) -> None:
        self.started[message.channel].append(message.payload["n"])
        await asyncio.sleep(message.payload["seconds"])

    def assert_in_order(self) -> None:
        """Every message has started once, in the order of its channel."""
        assert self.started == {channel: list(range(count)) for channel, count in self._counts.items()}

    async def _put(self, *seconds: float) -> None:
        created = []
        for one in seconds:
            channel = self.random.choice(list(self._counts))
            payload = {"n": self._counts[channel], "seconds": one, "padding": self._padding}
            created.append(NewMessage(channel=channel, payload=payload))
            self._counts[channel] += 1
        await self._queue.enqueue_many(created)


@asynccontextmanager
async def in_background(work: Any) -> AsyncIterator[None]:
    """Run a coroutine until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def test_messages_that_are_given_back_keep_their_order(dsn: str, patient: None) -> None:
    """If prefetched messages are given back, so are later ones of the same channel from another reply."""
    order: list[int] = []

    async def handle(message: AsyncMessage) -> None:
        order.append(message.payload["n"])
        await asyncio.sleep(message.payload["seconds"])

    async def scenario() -> None:
        count = 0

        async def put(*seconds: float) -> None:
            nonlocal count
            for one in seconds:
                await queue.enqueue("a", {"n": count, "seconds": one})
                count += 1

        async with AsyncQueue(dsn) as queue, running_worker(queue, handle, concurrency=1, prefetch=50):
            for _ in range(5):
                await put(*[0.001] * 30)
                await asyncio.sleep(0.05)
                await put(0.125, 0.001, 0.001)
                await asyncio.sleep(0.06)
                await put(0.001, 0.001)
                await asyncio.sleep(0.3)
            await wait_until(lambda: len(order) >= count, "all have run")

    asyncio.run(scenario())
    assert order == sorted(order)


def test_a_reply_on_its_way_does_not_overtake_messages_that_are_given_back(dsn: str, patient: None) -> None:
    """The worker leases message 3 while it gives 1 and 2 back, because both calls wait for the same lock."""
    order: list[str] = []
    started = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        order.append(message.payload)
        if message.payload == "slow":
            started.set()
            await asyncio.sleep(0.4)
        await asyncio.sleep(0.001)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            first = [*["quick"] * 40, "slow", "1", "2"]
            await queue.enqueue_many([NewMessage(channel="a", payload=one) for one in first])
            async with (
                await AsyncConnection.connect(dsn) as locker,
                running_worker(queue, handle, concurrency=1, prefetch=50),
            ):
                await started.wait()
                await locker.execute("lock table lonnymq.lease in share mode")
                await queue.enqueue("a", "3")
                await asyncio.sleep(0.35)
                await locker.commit()
                await wait_until(lambda: "3" in order, "all have run")
                await wait_until_drained(queue)

    asyncio.run(scenario())
    assert order[-4:] == ["slow", "1", "2", "3"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_messages_keep_their_order_although_the_connection_stalls(
    dsn: str, patient: None, concurrency: int
) -> None:
    """Calls that fetch and calls that give back pass each other in any way."""

    async def stall_now_and_then(bursts: Bursts, proxy: Proxy) -> None:
        while True:
            await asyncio.sleep(bursts.random.uniform(0.02, 0.3))
            proxy.stall()
            try:
                await asyncio.sleep(bursts.random.uniform(0.02, 0.25))
            finally:
                proxy.resume()

    async def scenario(proxy: Proxy) -> None:
        async with AsyncQueue(dsn) as queue:
            bursts = Bursts(queue, seed=concurrency)
            worker = running_worker(
                proxy.dsn, bursts.handle, concurrency=concurrency, prefetch=50, lease_s=TIMEOUT_S
            )
            async with worker as running:
                async with in_background(stall_now_and_then(bursts, proxy)):
                    await bursts.enqueue(rounds=8, quick=40)
                await wait_until_drained(queue)
            assert running.counts["given_back"] > 0
        bursts.assert_in_order()

    with Proxy(dsn) as proxy:
        asyncio.run(scenario(proxy))


@pytest.mark.parametrize(("concurrency", "max_bytes"), [(1, 200_000), (3, 400_000)])
def test_large_messages_that_find_no_memory_keep_their_order(
    dsn: str, patient: None, concurrency: int, max_bytes: int
) -> None:
    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            bursts = Bursts(queue, seed=concurrency, padding=LARGE)
            worker = running_worker(
                dsn,
                bursts.handle,
                concurrency=concurrency,
                prefetch=50,
                max_bytes=max_bytes,
                lease_s=TIMEOUT_S,
            )
            async with worker as running:
                await bursts.enqueue(rounds=6, quick=12)
                await wait_until_drained(queue)
            assert running.counts["given_back"] > 0
        bursts.assert_in_order()

    asyncio.run(scenario())


def test_a_content_that_is_being_read_does_not_overtake_a_message_that_is_given_back(
    dsn: str, connect: Connect, patient: None
) -> None:
    started: list[str] = []
    release = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.append(message.payload[:5])
        if message.payload == "slow":
            await release.wait()

    session = connect()

    def only_slow_is_leased() -> bool:
        return session.execute("select count(*) from lease").fetchone() == (1,)

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            payloads = [*["quick"] * 40, "slow", "small", "large" * 1_600_000]
            await queue.enqueue_many([NewMessage(channel="a", payload=one) for one in payloads])
            # Reading the content takes longer than a message may wait for a slot, and than this test.
            proxy.bytes_per_s = 100_000.0
            worker = running_worker(
                proxy.dsn, handle, concurrency=1, prefetch=50, lease_s=TIMEOUT_S, call_timeout_s=TIMEOUT_S
            )
            async with worker as running:
                await wait_until(lambda: running.counts["given_back"], "the small one was given back")
                await wait_until(only_slow_is_leased, "the large one was given back too")
                proxy.bytes_per_s = None
                release.set()
                await wait_until_drained(queue)

    with Proxy(dsn) as proxy:
        asyncio.run(scenario())
    assert started[-3:] == ["slow", "small", "large"]


def test_a_locked_lease_of_a_late_message_stops_nothing_else(
    dsn: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a transaction of somebody else has locked it, the message cannot be given back."""
    # Time to lock the lease.
    monkeypatch.setattr(inventory, "START_WITHIN_S", 3.0)
    started: list[str] = []
    release = asyncio.Event()

    async def handle(message: AsyncMessage) -> None:
        started.append(message.payload)
        if message.payload == "slow":
            await release.wait()

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            created = await queue.enqueue_many(
                [NewMessage(channel="a", payload=one) for one in [*["quick"] * 40, "slow", "late", "late"]]
            )
            late = [one.id for one in created[-2:]]
            locker = connect(autocommit=False)
            async with running_worker(queue, handle, concurrency=1, prefetch=50, lease_s=TIMEOUT_S) as worker:
                await wait_until(lambda: "slow" in started, "the slow one has started")
                lock = "select from lease where message_id = any (%s) for update"
                await wait_until(lambda: locker.execute(lock, [late]).rowcount == 2, "two are leased ahead")
                await asyncio.sleep(3.5)
                release.set()
                for n in range(20):
                    await queue.enqueue(f"b{n}", "other")
                await wait_until(lambda: started.count("other") == 20, "others are processed meanwhile")
                assert "late" not in started
                locker.rollback()
                await wait_until_drained(queue)
            assert worker.counts["completed"] == 63
            assert started.count("late") == 2

    asyncio.run(scenario())


@pytest.mark.slow
def test_workers_that_give_messages_back_process_all_of_them(
    dsn: str, queue: Queue, start_worker: StartWorker
) -> None:
    """Three workers are interrupted, killed and replaced, and their connections stall and break."""
    chance = random.Random(1)
    settings: dict[str, Any] = {
        "concurrency": 2,
        "prefetch": 50,
        "lease_s": 1.0,
        "call_timeout_s": 1.0,
        "max_bytes": 200_000,
        "shutdown_s": 5,
    }
    created: list[int] = []

    def enqueue(count: int, seconds: float, padding: str = "") -> None:
        payload = {"do": "sleep", "seconds": seconds, "padding": padding}
        messages = [NewMessage(channel=f"c{chance.randrange(4)}", payload=payload) for _ in range(count)]
        created.extend(one.id for one in queue.enqueue_many(messages) if one.id is not None)

    with Proxy(dsn) as proxy:

        def stall() -> None:
            proxy.stall()
            time.sleep(chance.uniform(0.05, 1.5))
            proxy.resume()

        def start() -> WorkerProcess:
            worker = start_worker(to=proxy.dsn, **settings)
            started.append(worker)
            eventually(lambda: "working as" in worker.log_text(), "the worker has started")
            return worker

        def replace(how: signal.Signals) -> None:
            working[0].send(how)
            exit_codes.append(working.pop(0).wait_for_exit())
            working.append(start())

        started: list[WorkerProcess] = []
        exit_codes: list[int] = []
        working = [start() for _ in range(3)]
        for fault in (
            stall,
            lambda: replace(signal.SIGTERM),
            proxy.reset_connections,
            lambda: replace(signal.SIGKILL),
            stall,
            lambda: replace(signal.SIGKILL),
            lambda: replace(signal.SIGTERM),
            proxy.reset_connections,
        ):
            enqueue(60, 0.001)
            enqueue(6, chance.choice([0.15, 0.3]))
            enqueue(6, 0.01, padding=LARGE)
            enqueue(20, 0.001)
            fault()
        eventually(lambda: is_drained(queue.status()))
        ended = {id_ for worker in started for id_ in worker.ids("end")}
        assert ended == set(created)
        assert queue.dead().list() == []
        assert exit_codes == [ExitCode.FINISHED, -signal.SIGKILL, -signal.SIGKILL, ExitCode.FINISHED]
        for worker in working:
            assert worker.stop() == ExitCode.FINISHED
            assert "Traceback" not in worker.log_text()
