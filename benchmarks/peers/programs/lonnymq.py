"""LonnyMQ: a channel per tenant, a worker per process, default settings."""

import sys

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Command, Payload
from lonnymq import AsyncMessage, AsyncQueue, NewMessage, Worker, WorkerSettings


async def install(command: Command) -> None:
    async with AsyncQueue() as queue:
        await queue.install()
        for tenant, policy in command.tenants.items():
            if policy.per_s is not None:
                await queue.channel(tenant).set(release_interval_ms=1000 // policy.per_s)
            if policy.max_concurrency is not None:
                await queue.channel(tenant).set(max_concurrency=policy.max_concurrency)


async def enqueue(command: Command) -> None:
    async with AsyncQueue() as queue:

        async def one(tenant: str, payload: Payload) -> None:
            await queue.enqueue(tenant, payload)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            await queue.copy_in(NewMessage(channel=tenant, payload=payload) for tenant, payload in batch)

        await kit.send(command, one, many, batch_size=100_000)


def work(command: Command) -> None:
    async def handle(message: AsyncMessage) -> None:
        await kit.handle(message.payload)

    worker = Worker("", handle, settings=WorkerSettings(prefetch=command.batch))
    kit.wait_for_go()
    sys.exit(worker.run())


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
