"""LonnyMQ: a channel per tenant, a worker per process, settings as they come."""

import sys

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload
from lonnymq import AsyncMessage, AsyncQueue, NewMessage, Worker, WorkerSettings


async def install(told: Order) -> None:
    async with AsyncQueue() as queue:
        await queue.install()
        for tenant, policy in told.tenants.items():
            if policy.per_s is not None:
                await queue.channel(tenant).set(release_interval_ms=1000 // policy.per_s)
            if policy.max_concurrency is not None:
                await queue.channel(tenant).set(max_concurrency=policy.max_concurrency)


async def enqueue(told: Order) -> None:
    async with AsyncQueue() as queue:

        async def one(tenant: str, payload: Payload) -> None:
            await queue.enqueue(tenant, payload)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            await queue.copy_in(NewMessage(channel=tenant, payload=payload) for tenant, payload in batch)

        await kit.send(told, one, many, at_once=100_000)


def work(told: Order) -> None:
    async def handle(message: AsyncMessage) -> None:
        await kit.handle(message.payload)

    lease_s = 30.0 if told.lease_s is None else told.lease_s
    worker = Worker("", handle, settings=WorkerSettings(prefetch=told.batch, lease_s=lease_s))
    kit.wait_for_go()
    sys.exit(worker.run())


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
