"""An asyncio worker: sleeps until work comes, keeps its leases, ends without losing anything."""

import asyncio

import lonnymq
from lonnymq import AsyncMessage, AsyncQueue, CompleteOutcome, HeartbeatOutcome

LEASE_MS = 1000


async def work(queue: AsyncQueue, done: "asyncio.Queue[int]", stopping: asyncio.Event) -> None:
    """The loop of a worker: lease a few, work them at the same time, ask again."""
    while not stopping.is_set():
        batch = await queue.dequeue(limit=5, lease_ms=LEASE_MS, worker="example", wait=0.5)
        if stopping.is_set():
            await queue.give_back(batch)
            return
        async with asyncio.TaskGroup() as attempts:
            for message in batch:
                attempts.create_task(attempt(message, done))


async def attempt(message: AsyncMessage, done: "asyncio.Queue[int]") -> None:
    """Work one message while another task keeps its lease."""
    keeper = asyncio.create_task(keep(message))
    try:
        await asyncio.sleep(message.payload["seconds"])
    finally:
        keeper.cancel()
    if await message.complete() is CompleteOutcome.COMPLETED:
        done.put_nowait(message.id)


async def keep(message: AsyncMessage) -> None:
    """Extend the lease well before it ends, until it is lost or this task is cancelled."""
    while True:
        await asyncio.sleep(LEASE_MS / 3000)
        if await message.heartbeat(lease_ms=LEASE_MS) is not HeartbeatOutcome.EXTENDED:
            return


async def run(dsn: str) -> None:
    done: asyncio.Queue[int] = asyncio.Queue()
    stopping = asyncio.Event()
    async with AsyncQueue(dsn) as queue:
        await queue.install()
        worker = asyncio.create_task(work(queue, done, stopping))
        # One message takes longer than its lease: the heartbeats keep it.
        slow = await queue.enqueue("acme", {"seconds": 1.5})
        quick = [await queue.enqueue(f"tenant-{n}", {"seconds": 0}) for n in range(20)]
        expected = sorted(created.id for created in [slow, *quick] if created.id is not None)
        async with asyncio.timeout(20):
            completed = [await done.get() for _ in expected]
        stopping.set()
        await worker
    assert done.empty()
    assert sorted(completed) == expected
    print(f"{len(completed)} messages completed, each once")


def main() -> None:
    with lonnymq.embedded() as server:
        asyncio.run(run(server.dsn))


if __name__ == "__main__":
    main()
