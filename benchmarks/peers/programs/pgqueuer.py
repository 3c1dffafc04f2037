"""pgqueuer: an entrypoint per tenant, asyncpg, uvloop, batches of 100."""

import asyncio
import json
import signal
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

BATCH = 100
# Of a tenant at a time, if nobody asks for less, and then the size of a batch too: it writes ends when it has
# a batch of them, or every 0.1 s, and with a batch larger than what may run it would always wait for that.
SHARE = 200
# How soon it looks again after a cap was reached; not in its documentation, and 0.1 s unless it is set.
LOOK = timedelta(milliseconds=5)


async def install(told: Order) -> None:
    await Queries(AsyncpgDriver(await asyncpg.connect())).install()


async def enqueue(told: Order) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))

    async def one(tenant: str, payload: Payload) -> None:
        await queries.enqueue(tenant, kit.encoded(payload))

    async def many(batch: list[tuple[str, Payload]]) -> None:
        names = [tenant for tenant, _ in batch]
        await queries.enqueue(names, [kit.encoded(payload) for _, payload in batch], [0] * len(batch))

    await kit.send(told, one, many)


async def work(told: Order) -> None:
    manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect())))

    async def handle(job: Job) -> None:
        assert job.payload is not None
        await kit.handle(json.loads(job.payload))

    for tenant, policy in told.tenants.items():
        limit = policy.max_concurrency or (SHARE if told.is_tenanted else 0)
        manager.entrypoint(tenant, concurrency_limit=limit)(handle)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    kit.wait_for_go()
    manager.min_dequeue_poll_interval = LOOK
    is_capped = any(policy.max_concurrency for policy in told.tenants.values())
    batch = 1 if is_capped else SHARE if told.is_tenanted else told.batch or BATCH
    # What a dead worker had is found at the next look, and it looks whenever this is over.
    patience = timedelta(seconds=told.lease_s or 30)
    await manager.run(batch_size=batch, dequeue_timeout=patience, heartbeat_timeout=patience)


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    kit.run(install=install, enqueue=enqueue, work=work)
