"""A worker sleeps until messages arrive, keeps its leases, retries, and stops without losing anything."""

import asyncio

import lonnymq
from lonnymq import AsyncMessage, AsyncQueue, Defer, Worker, WorkerSettings

LEASE_S = 1


async def handle(message: AsyncMessage) -> None:
    """Handle one message, while the worker keeps its lease."""
    await asyncio.sleep(message.payload["seconds"])
    if message.payload["seconds"] and message.attempt == 1:
        raise Defer(delay=0.1, state="half done")
    assert message.attempt == 1 or message.state == "half done"


async def run(dsn: str) -> None:
    async with AsyncQueue(dsn) as queue:
        await queue.install()
        worker = Worker(queue, handle, settings=WorkerSettings(concurrency=5, lease_s=LEASE_S))
        serving = asyncio.create_task(worker.serve())
        # One message takes longer than its lease: heartbeats extend the lease.
        await queue.enqueue("acme", {"seconds": 1.5})
        for number in range(20):
            await queue.enqueue(f"tenant-{number}", {"seconds": 0})
        async with asyncio.timeout(30):
            while worker.counts["completed"] < 21:  # noqa: ASYNC110 - a real program just serves
                await asyncio.sleep(0.01)
        worker.stop()
        assert await serving == lonnymq.ExitCode.FINISHED
        assert worker.counts == {"completed": 21, "deferred": 1}
        assert (await queue.status()).waiting == 0
    print(f"{worker.counts['completed']} messages completed, each once")


def main() -> None:
    with lonnymq.embedded() as server:
        asyncio.run(run(server.dsn))


if __name__ == "__main__":
    main()
