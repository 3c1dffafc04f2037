"""Celery, with either broker: a queue and a task per tenant, prefork, much prefetched as for short tasks."""

import os

from celery import Celery

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload, Policy

PREFETCH = 128

told = kit.order()
is_limited = any(policy.per_s is not None for policy in told.tenants.values())
# A limit is each worker's own: as many workers as processes, each with its part of the rate. One worker with
# many processes falls short of it: each message that waits has a timer, the loop that serves the timers takes
# ten of them at a time and then sleeps, up to a second, and many look in vain.
workers = told.processes if is_limited and not told.is_tenanted else 1
url = os.environ["LONNYMQ_BENCH_BROKER"]
app = Celery("peer", broker=url)
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    # What is over its rate waits in the worker: only if it takes everything do others come by, if there are
    # any; alone, the fewer timers the better.
    worker_prefetch_multiplier=PREFETCH if not is_limited else 0 if told.is_tenanted else 1,
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


def rate(policy: Policy) -> str | None:
    return None if policy.per_s is None else f"{60 * policy.per_s / workers:g}/m"


tasks = {
    tenant: app.task(handle, name=tenant, rate_limit=rate(policy)) for tenant, policy in told.tenants.items()
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
    concurrency = (told.batch or told.processes) // workers
    for _ in range(workers - 1):
        if not os.fork():
            break
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
