"""Dramatiq with RabbitMQ: a queue and an actor per tenant; its own command line starts the processes."""

import os

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from benchmarks.peers.programs import kit
from benchmarks.peers.programs.kit import Command, Payload

THREADS = 8
PREFETCH = "200"

command = kit.read_command()
# Messages are durable before the call returns, as with all peers, except in bulk mode.
broker = RabbitmqBroker(url=os.environ["LONNYMQ_BENCH_BROKER"], confirm_delivery=command.mode != "bulk")
dramatiq.set_broker(broker)


def handle(payload: Payload) -> None:
    kit.handle_blocking(payload)


actors = {
    tenant: dramatiq.actor(
        handle, actor_name=tenant, queue_name=f"{command.namespace}_{tenant}", broker=broker
    )
    for tenant in command.tenants
}


def install(command: Command) -> None:
    """Nothing to install: queues are created with their first message."""


async def enqueue(command: Command) -> None:
    async def one(tenant: str, payload: Payload) -> None:
        actors[tenant].send(payload)

    async def many(batch: list[tuple[str, Payload]]) -> None:
        for tenant, payload in batch:
            actors[tenant].send(payload)

    await kit.send(command, one, many)
    broker.close()


def work(command: Command) -> None:
    from dramatiq.cli import main, make_argument_parser

    if command.lease_s is None:
        os.environ["dramatiq_queue_prefetch"] = PREFETCH  # noqa: SIM112 - spelled as Dramatiq reads it
    kit.wait_for_go()
    counts = [f"--processes={command.processes}", f"--threads={THREADS}"]
    main(make_argument_parser().parse_args([*counts, "benchmarks.peers.programs.dramatiq"]))


if __name__ == "__main__":
    kit.run(install=install, enqueue=enqueue, work=work)
