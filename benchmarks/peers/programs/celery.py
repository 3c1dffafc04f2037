"""Celery, with either broker: a queue and a task per tenant, prefork, much prefetched as for short tasks."""

import os

from celery import Celery

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

PREFETCH = 128

told = kit.order()
is_limited = any(policy.per_s is not None for policy in told.tenants.values())
url = os.environ["LONNYMQ_BENCH_BROKER"]
app = Celery("peer", broker=url)
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    # What is over its rate waits in the worker: only if it takes everything do the others come by.
    worker_prefetch_multiplier=0 if is_limited else PREFETCH,
    worker_disable_rate_limits=not is_limited,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)
if url.startswith("amqp") and told.how != "bulk":
    # Durable before the call returns, as with everybody else.
    app.conf.broker_transport_options = {"confirm_publish": True}
if told.lease_s is not None:
    app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
    if url.startswith("redis"):
        app.conf.broker_transport_options = {
            "visibility_timeout": told.lease_s,
            # It would look for what is visible again every 10 s, and in earnest every tenth time.
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }


def queue(tenant: str) -> str:
    return f"{told.place}.{tenant}"


def handle(payload: Payload) -> None:
    kit.handle_blocking(payload)


tasks = {
    tenant: app.task(handle, name=tenant, rate_limit=None if policy.per_s is None else f"{policy.per_s}/s")
    for tenant, policy in told.tenants.items()
}


def install(told: Order) -> None:
    """Queues come with their first message."""


async def enqueue(told: Order) -> None:
    with app.producer_pool.acquire(block=True) as producer:

        async def one(tenant: str, payload: Payload) -> None:
            tasks[tenant].apply_async((payload,), queue=queue(tenant), producer=producer)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            for tenant, payload in batch:
                await one(tenant, payload)

        await kit.send(told, one, many)


def work(told: Order) -> None:
    kit.wait_for_go()
    # A process does one at a time: as many as others have at a time, where that is asked.
    concurrency = told.batch or told.processes
    quick = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    queues = ",".join(queue(tenant) for tenant in told.tenants)
    app.worker_main(
        [
            "worker",
            f"--concurrency={concurrency}",
            f"--queues={queues}",
            f"--hostname=w{os.getpid()}@%h",
            *quick,
        ]
    )


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
