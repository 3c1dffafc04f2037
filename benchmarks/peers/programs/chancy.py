"""chancy: a queue per tenant, the asyncio executor, and eager polling."""

import logging
import os

from chancy import Chancy, Job, Queue, Worker
from chancy.plugins.leadership import Leadership
from chancy.plugins.recovery import Recovery

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Command, Payload

CONCURRENCY = 200
# Concurrency per tenant unless a cap asks for less; with more, a large tenant gets too far ahead.
SHARE = 200


async def handle(**payload: object) -> None:
    await kit.handle(payload)


def make_client(command: Command) -> Chancy:
    plugins = (
        [] if command.lease_s is None else [Recovery(poll_interval=1), Leadership(poll_interval=1, timeout=2)]
    )
    logger = logging.getLogger("chancy")
    logger.setLevel(logging.ERROR)
    return Chancy(f"dbname={os.environ['PGDATABASE']}", plugins=plugins, log=logger)


async def install(command: Command) -> None:
    async with make_client(command) as chancy:
        await chancy.migrate()
        for tenant, policy in command.tenants.items():
            await chancy.declare(
                Queue(
                    name=tenant,
                    concurrency=policy.max_concurrency or (SHARE if command.has_tenants else CONCURRENCY),
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                    rate_limit=policy.per_s,
                    rate_limit_window=None if policy.per_s is None else 1,
                )
            )


def job(command: Command, tenant: str, payload: Payload) -> Job:
    # When this module runs as a program, its name differs from the one that workers import.
    return Job(func=f"{__spec__.name}.handle", queue=tenant, kwargs=payload, max_attempts=2)


async def enqueue(command: Command) -> None:
    async with make_client(command) as chancy:

        async def one(tenant: str, payload: Payload) -> None:
            await chancy.push(job(command, tenant, payload))

        async def many(batch: list[tuple[str, Payload]]) -> None:
            async for _ in chancy.push_many([job(command, tenant, payload) for tenant, payload in batch]):
                pass

        await kit.send(command, one, many)


async def work(command: Command) -> None:
    heartbeats = (
        {}
        if command.lease_s is None
        else {"heartbeat_poll_interval": 1, "heartbeat_timeout": command.lease_s}
    )
    async with make_client(command) as chancy:
        kit.wait_for_go()
        async with Worker(chancy, shutdown_timeout=5, **heartbeats) as worker:
            await worker.wait_for_shutdown()


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
