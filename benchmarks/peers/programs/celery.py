"""Celery with either broker: a queue and a task per tenant, prefork, a large prefetch for short tasks."""

import os

from celery import Celery

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Command, Payload, TenantLimits

PREFETCH = 128

command = kit.read_command()
is_limited = any(policy.per_s is not None for policy in command.tenants.values())
# A rate limit applies to each worker, so there are as many workers as processes, each with its part of the
# rate. One worker with many processes does not reach the rate: every waiting message has a timer, and the
# event loop handles ten timers at a time, many of them in vain, before it sleeps for up to a second.
workers = command.processes if is_limited and not command.has_tenants else 1
url = os.environ["LONNYMQ_BENCH_BROKER"]
app = Celery("peer", broker=url)
app.conf.update(
    task_ignore_result=True,
    task_serializer="json",
    # Messages above the rate wait in the worker. With other tenants it must prefetch everything, so that
    # their messages get through; with one tenant, fewer timers are better.
    worker_prefetch_multiplier=PREFETCH if not is_limited else 0 if command.has_tenants else 1,
    worker_disable_rate_limits=not is_limited,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)
if url.startswith("amqp") and command.mode != "bulk":
    # Messages are durable before the call returns, as with all peers.
    app.conf.broker_transport_options = {"confirm_publish": True}
if command.lease_s is not None:
    app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
    if url.startswith("redis"):
        app.conf.broker_transport_options = {
            "visibility_timeout": command.lease_s,
            # By default it looks for redeliverable messages only every 10 s, and in fact every tenth time.
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
        }


def queue(tenant: str) -> str:
    return f"{command.namespace}.{tenant}"


def handle(payload: Payload) -> None:
    kit.handle_blocking(payload)


def rate(policy: TenantLimits) -> str | None:
    return None if policy.per_s is None else f"{60 * policy.per_s / workers:g}/m"


tasks = {
    tenant: app.task(handle, name=tenant, rate_limit=rate(policy))
    for tenant, policy in command.tenants.items()
}


def install(command: Command) -> None:
    """Nothing to install: queues are created with their first message."""


async def enqueue(command: Command) -> None:
    with app.producer_pool.acquire(block=True) as producer:

        async def one(tenant: str, payload: Payload) -> None:
            tasks[tenant].apply_async((payload,), queue=queue(tenant), producer=producer)

        async def many(batch: list[tuple[str, Payload]]) -> None:
            for tenant, payload in batch:
                await one(tenant, payload)

        await kit.send(command, one, many)


def work(command: Command) -> None:
    kit.wait_for_go()
    # A process runs one task at a time, so a batch size is a number of processes.
    concurrency = (command.batch or command.processes) // workers
    for _ in range(workers - 1):
        if not os.fork():
            break
    flags = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    queues = ",".join(queue(tenant) for tenant in command.tenants)
    app.worker_main(
        [
            "worker",
            f"--concurrency={concurrency}",
            f"--queues={queues}",
            f"--hostname=w{os.getpid()}@%h",
            *flags,
        ]
    )


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
