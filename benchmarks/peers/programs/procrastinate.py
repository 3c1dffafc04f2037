"""procrastinate: a queue and a worker per tenant, jobs deleted when done."""

import asyncio
import itertools
import signal
from collections import defaultdict

import procrastinate

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

CONCURRENCY = 30
told = kit.order()
app = procrastinate.App(connector=procrastinate.PsycopgConnector(min_size=4, max_size=CONCURRENCY))


@app.task(name="handle")
async def handle(**payload: object) -> None:
    await kit.handle(payload)


if told.lease_s is not None:
    # What its documentation has for jobs of dead workers: a periodic task of the user's, here each second.
    @app.periodic(cron="* * * * * */1")
    @app.task(queueing_lock="stalled", queue="stalled", pass_context=True)
    async def retry_stalled(context: procrastinate.JobContext, timestamp: int) -> None:
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=told.lease_s):
            await app.job_manager.retry_job(job)


async def install(told: Order) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(told: Order) -> None:
    numbers = itertools.count()

    def place(tenant: str) -> tuple[str, str | None]:
        """Return a queue and a lock: jobs of a lock run one at a time, so a cap of three is three locks."""
        cap = told.tenants[tenant].max_concurrency
        return tenant, None if cap is None else f"{tenant}/{next(numbers) % cap}"

    def configured(place: tuple[str, str | None]) -> procrastinate.jobs.JobDeferrer:
        queue, lock = place
        return handle.configure(queue=queue, lock=lock)

    async with app.open_async():

        async def one(tenant: str, payload: Payload) -> None:
            await configured(place(tenant)).defer_async(**payload)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            payloads = defaultdict(list)
            for tenant, payload in batch:
                payloads[place(tenant)].append(payload)
            for where, those in payloads.items():
                await configured(where).batch_defer_async(*those)

        await kit.send(told, one, many)


async def work(told: Order) -> None:
    heartbeats = {} if told.lease_s is None else {"update_heartbeat_interval": 0.5}
    # One worker would take the oldest first, whosoever they are: a worker for each tenant's queue.
    queues = [[tenant] for tenant in told.tenants] if told.is_tenanted else [None]
    async with app.open_async():
        kit.wait_for_go()
        workers = [
            asyncio.create_task(
                app.run_worker_async(
                    queues=names,
                    concurrency=told.batch or CONCURRENCY,
                    delete_jobs="always",
                    # A cap that is reached is looked at again as soon as something is notified, or then.
                    fetch_job_polling_interval=0.1,
                    install_signal_handlers=False,
                    **heartbeats,
                )
            )
            for names in queues
        ]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop, workers)
        await asyncio.gather(*workers, return_exceptions=True)


def stop(workers: list[asyncio.Task[None]]) -> None:
    for worker in workers:
        worker.cancel()


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
