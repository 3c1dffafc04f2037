"""Generates traffic from a seed: a few tenants send most of the messages, and send them in bursts."""

import random
from array import array
from dataclasses import dataclass

from benchmarks.simulation.rules import SECOND


@dataclass(frozen=True)
class Parameters:
    """The parameters of the simulation; the default has a million tenants."""

    seed: int = 7
    tenants: int = 1_000_000
    # The share of tenants that send messages.
    active_share: float = 0.2
    duration_s: int = 600
    # The Pareto exponent of messages per active tenant; near 1 the tail is heavy.
    tail: float = 1.12
    largest: int = 60_000
    # Tenants with at least this many messages send them within a second.
    burst_from: int = 100
    # How many messages can be processed at the same time, and how long one takes.
    slots: int = 400
    work_ms: int = 100
    # How many large tenants have messages that take much longer.
    slow_tenants: int = 5
    slow_work_ms: int = 2_000
    # One tenant in this many pays for a higher weight.
    paying_one_in: int = 100
    # How often the workers ask for messages.
    step_ms: int = 10


@dataclass(frozen=True)
class Traffic:
    """All messages in the order of their creation, and the properties of tenants."""

    parameters: Parameters
    at: "array[int]"
    tenant: "array[int]"
    messages_of: "array[int]"
    slow: frozenset[int]
    paying: frozenset[int]


def make_traffic(parameters: Parameters) -> Traffic:
    rng = random.Random(parameters.seed)
    messages_of = array("l", bytes(array("l").itemsize * parameters.tenants))
    arrivals: list[tuple[int, int]] = []
    duration = parameters.duration_s * SECOND
    for tenant in range(parameters.tenants):
        if rng.random() >= parameters.active_share:
            continue
        count = min(parameters.largest, int((1.0 - rng.random()) ** (-1.0 / parameters.tail)))
        messages_of[tenant] = count
        if count >= parameters.burst_from:
            begin = int(rng.random() * duration * 0.8)
            arrivals += [(begin + int(rng.random() * SECOND), tenant) for _ in range(count)]
        else:
            arrivals += [(int(rng.random() * duration), tenant) for _ in range(count)]
    arrivals.sort()
    large = sorted(range(parameters.tenants), key=lambda tenant: -messages_of[tenant])
    middle = large[parameters.slow_tenants * 4 : parameters.slow_tenants * 5]
    return Traffic(
        parameters,
        array("q", (at for at, _ in arrivals)),
        array("l", (tenant for _, tenant in arrivals)),
        messages_of,
        slow=frozenset(middle),
        paying=frozenset(
            rng.sample(range(parameters.tenants), parameters.tenants // parameters.paying_one_in)
        ),
    )
