"""procrastinate: a queue and a worker per tenant, jobs deleted when done."""

import asyncio
import itertools
import signal
from collections import defaultdict

import procrastinate

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Command, Payload

CONCURRENCY = 30
command = kit.read_command()
app = procrastinate.App(connector=procrastinate.PsycopgConnector(min_size=4, max_size=CONCURRENCY))


@app.task(name="handle")
async def handle(**payload: object) -> None:
    await kit.handle(payload)


if command.lease_s is not None:
    # The periodic task that its documentation recommends for jobs of dead workers, here every second.
    @app.periodic(cron="* * * * * */1")
    @app.task(queueing_lock="stalled", queue="stalled", pass_context=True)
    async def retry_stalled(context: procrastinate.JobContext, timestamp: int) -> None:
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=command.lease_s):
            await app.job_manager.retry_job(job)


async def install(command: Command) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(command: Command) -> None:
    numbers = itertools.count()

    def queue_and_lock(tenant: str) -> tuple[str, str | None]:
        """Return a queue and a lock; jobs with a lock run one at a time, so a cap of 3 is three locks."""
        cap = command.tenants[tenant].max_concurrency
        return tenant, None if cap is None else f"{tenant}/{next(numbers) % cap}"

    def deferrer(target: tuple[str, str | None]) -> procrastinate.jobs.JobDeferrer:
        queue, lock = target
        return handle.configure(queue=queue, lock=lock)

    async with app.open_async():

        async def one(tenant: str, payload: Payload) -> None:
            await deferrer(queue_and_lock(tenant)).defer_async(**payload)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            payloads = defaultdict(list)
            for tenant, payload in batch:
                payloads[queue_and_lock(tenant)].append(payload)
            for target, group in payloads.items():
                await deferrer(target).batch_defer_async(*group)

        await kit.send(command, one, many)


async def work(command: Command) -> None:
    heartbeats = {} if command.lease_s is None else {"update_heartbeat_interval": 0.5}
    # A single worker would take the oldest jobs first, so each tenant's queue has a worker of its own.
    queues = [[tenant] for tenant in command.tenants] if command.has_tenants else [None]
    async with app.open_async():
        kit.wait_for_go()
        workers = [
            asyncio.create_task(
                app.run_worker_async(
                    queues=names,
                    concurrency=command.batch or CONCURRENCY,
                    delete_jobs="always",
                    # After a cap was reached, jobs are fetched at the next notification or after this time.
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
