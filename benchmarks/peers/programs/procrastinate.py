"""procrastinate: a queue per tenant, jobs deleted when done."""

import procrastinate

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

CONCURRENCY = 30
app = procrastinate.App(connector=procrastinate.PsycopgConnector(min_size=4, max_size=CONCURRENCY))


@app.task(name="handle")
async def handle(**payload: object) -> None:
    await kit.handle(payload)


async def install(told: Order) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


def configured(told: Order, tenant: str) -> procrastinate.jobs.JobDeferrer:
    # What it has for tenants is a lock: one job of a name at a time, no more and no less.
    return handle.configure(queue=tenant, lock=tenant if told.is_tenanted else None)


async def enqueue(told: Order) -> None:
    async with app.open_async():

        async def one(tenant: str, payload: Payload) -> None:
            await configured(told, tenant).defer_async(**payload)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            for tenant in dict.fromkeys(tenant for tenant, _ in batch):
                payloads = [payload for name, payload in batch if name == tenant]
                await configured(told, tenant).batch_defer_async(*payloads)

        await kit.send(told, one, many)


async def work(told: Order) -> None:
    async with app.open_async():
        kit.wait_for_go()
        await app.run_worker_async(concurrency=told.batch or CONCURRENCY, delete_jobs="always")


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
