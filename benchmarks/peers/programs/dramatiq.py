"""Dramatiq with RabbitMQ: a queue and an actor per tenant, its own command line for processes."""

import os

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Order, Payload

THREADS = 8
PREFETCH = "200"

told = kit.order()
# Durable before the call returns, as with everybody else; in bulk nobody waits for each.
broker = RabbitmqBroker(url=os.environ["LONNYMQ_BENCH_BROKER"], confirm_delivery=told.how != "bulk")
dramatiq.set_broker(broker)


def handle(payload: Payload) -> None:
    kit.handle_blocking(payload)


actors = {
    tenant: dramatiq.actor(handle, actor_name=tenant, queue_name=f"{told.place}_{tenant}", broker=broker)
    for tenant in told.tenants
}


def install(told: Order) -> None:
    """Queues come with their first message."""


async def enqueue(told: Order) -> None:
    async def one(tenant: str, payload: Payload) -> None:
        actors[tenant].send(payload)

    async def many(batch: list[tuple[str, Payload]]) -> None:
        for tenant, payload in batch:
            actors[tenant].send(payload)

    await kit.send(told, one, many)
    broker.close()


def work(told: Order) -> None:
    from dramatiq.cli import main, make_argument_parser

    if told.lease_s is None:
        os.environ["dramatiq_queue_prefetch"] = PREFETCH  # noqa: SIM112 - its own spelling
    kit.wait_for_go()
    counts = [f"--processes={told.processes}", f"--threads={THREADS}"]
    main(make_argument_parser().parse_args([*counts, "benchmarks.peers.programs.dramatiq"]))


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
