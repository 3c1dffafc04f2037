"""Who enqueues what and when, from a seed: a few tenants have most of it, and send it at once."""

import random
from array import array
from dataclasses import dataclass

from benchmarks.simulation.rules import SECOND


@dataclass(frozen=True)
class Parameters:
    """The size of the simulated world; the default has a million tenants."""

    seed: int = 7
    tenants: int = 1_000_000
    # Of whom so many have anything to do in this time.
    active_share: float = 0.2
    duration_s: int = 600
    # Pareto's exponent for messages per active tenant: near 1 is a heavy tail.
    tail: float = 1.12
    largest: int = 60_000
    # Tenants from this size on send everything within a second.
    burst_from: int = 100
    # Messages that can be worked at the same time, and how long one takes.
    slots: int = 400
    work_ms: int = 100
    # So many of the large tenants have messages that take much longer.
    slow_tenants: int = 5
    slow_work_ms: int = 2_000
    # One tenant in so many pays for more.
    paying_one_in: int = 100
    # How often the fleet asks for messages.
    step_ms: int = 10


@dataclass(frozen=True)
class Traffic:
    """All messages in the order of their coming, and what is known of tenants."""

    world: Parameters
    at: "array[int]"
    tenant: "array[int]"
    messages_of: "array[int]"
    slow: frozenset[int]
    paying: frozenset[int]


def make_traffic(world: Parameters) -> Traffic:
    chance = random.Random(world.seed)
    messages_of = array("l", bytes(array("l").itemsize * world.tenants))
    coming: list[tuple[int, int]] = []
    duration = world.duration_s * SECOND
    for tenant in range(world.tenants):
        if chance.random() >= world.active_share:
            continue
        count = min(world.largest, int((1.0 - chance.random()) ** (-1.0 / world.tail)))
        messages_of[tenant] = count
        if count >= world.burst_from:
            begin = int(chance.random() * duration * 0.8)
            coming += [(begin + int(chance.random() * SECOND), tenant) for _ in range(count)]
        else:
            coming += [(int(chance.random() * duration), tenant) for _ in range(count)]
    coming.sort()
    large = sorted(range(world.tenants), key=lambda tenant: -messages_of[tenant])
    middle = large[world.slow_tenants * 4 : world.slow_tenants * 5]
    return Traffic(
        world,
        array("q", (at for at, _ in coming)),
        array("l", (tenant for _, tenant in coming)),
        messages_of,
        slow=frozenset(middle),
        paying=frozenset(chance.sample(range(world.tenants), world.tenants // world.paying_one_in)),
    )
