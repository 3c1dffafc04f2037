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
from benchmarks.peers.programs.kit import Command, Payload

BATCH = 100
# Concurrency per tenant unless a cap asks for less, and then also the batch size: it writes completions when
# it has a batch of them or after 0.1 s, so with batches larger than the concurrency it would always wait.
SHARE = 200
# The polling interval after a cap was reached; undocumented, 0.1 s by default.
CAP_POLL_INTERVAL = timedelta(milliseconds=5)


async def install(command: Command) -> None:
    await Queries(AsyncpgDriver(await asyncpg.connect())).install()


async def enqueue(command: Command) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))

    async def one(tenant: str, payload: Payload) -> None:
        await queries.enqueue(tenant, kit.encode(payload))

    async def many(batch: list[tuple[str, Payload]]) -> None:
        names = [tenant for tenant, _ in batch]
        await queries.enqueue(names, [kit.encode(payload) for _, payload in batch], [0] * len(batch))

    await kit.send(command, one, many)


async def work(command: Command) -> None:
    manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect())))

    async def handle(job: Job) -> None:
        assert job.payload is not None
        await kit.handle(json.loads(job.payload))

    for tenant, policy in command.tenants.items():
        limit = policy.max_concurrency or (SHARE if command.has_tenants else 0)
        manager.entrypoint(tenant, concurrency_limit=limit)(handle)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    kit.wait_for_go()
    manager.min_dequeue_poll_interval = CAP_POLL_INTERVAL
    is_capped = any(policy.max_concurrency for policy in command.tenants.values())
    batch = 1 if is_capped else SHARE if command.has_tenants else command.batch or BATCH
    # Messages of a dead worker are found at the next poll, which happens after this timeout.
    timeout = timedelta(seconds=command.lease_s or 30)
    await manager.run(batch_size=batch, dequeue_timeout=timeout, heartbeat_timeout=timeout)


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    kit.run(install=install, enqueue=enqueue, work=work)
