"""chancy: a queue per tenant, the executor for asyncio, polled again as soon as a job is done."""

import logging
import os

from chancy import Chancy, Job, Queue, Worker
from chancy.plugins.leadership import Leadership
from chancy.plugins.recovery import Recovery

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

CONCURRENCY = 200
# Of a tenant at a time, if nobody asks for less: with more, a large one has too much of a start.
SHARE = 200


async def handle(**payload: object) -> None:
    await kit.handle(payload)


def connected(told: Order) -> Chancy:
    plugins = (
        [] if told.lease_s is None else [Recovery(poll_interval=1), Leadership(poll_interval=1, timeout=2)]
    )
    quiet = logging.getLogger("chancy")
    quiet.setLevel(logging.ERROR)
    return Chancy(f"dbname={os.environ['PGDATABASE']}", plugins=plugins, log=quiet)


async def install(told: Order) -> None:
    async with connected(told) as chancy:
        await chancy.migrate()
        for tenant, policy in told.tenants.items():
            await chancy.declare(
                Queue(
                    name=tenant,
                    concurrency=policy.max_concurrency or (SHARE if told.is_tenanted else CONCURRENCY),
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                    rate_limit=policy.per_s,
                    rate_limit_window=None if policy.per_s is None else 1,
                )
            )


def job(told: Order, tenant: str, payload: Payload) -> Job:
    # Where this module is run as a program, it has another name than the one workers import.
    return Job(func=f"{__spec__.name}.handle", queue=tenant, kwargs=payload, max_attempts=2)


async def enqueue(told: Order) -> None:
    async with connected(told) as chancy:

        async def one(tenant: str, payload: Payload) -> None:
            await chancy.push(job(told, tenant, payload))

        async def many(batch: list[tuple[str, Payload]]) -> None:
            async for _ in chancy.push_many([job(told, tenant, payload) for tenant, payload in batch]):
                pass

        await kit.send(told, one, many)


async def work(told: Order) -> None:
    noticed = (
        {} if told.lease_s is None else {"heartbeat_poll_interval": 1, "heartbeat_timeout": told.lease_s}
    )
    async with connected(told) as chancy:
        kit.wait_for_go()
        async with Worker(chancy, shutdown_timeout=5, **noticed) as worker:
            await worker.wait_for_shutdown()


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
