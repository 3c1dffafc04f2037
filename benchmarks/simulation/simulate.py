"""Plays traffic against a scheduler: a fleet with so many slots asks for messages at every step."""

from array import array
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.simulation.schedulers import Scheduler
from benchmarks.simulation.traffic import Traffic


@dataclass(frozen=True)
class Waits:
    """How long each tenant's messages waited, in microseconds; and how full the fleet was."""

    total: "array[int]"
    longest: "array[int]"
    released: "array[int]"
    most_in_flight: "array[int]"
    ended_at: int
    # Of the time that slots were free while something waited: what a policy leaves unused on purpose.
    idle_share: float

    def mean(self, tenant: int) -> float:
        return self.total[tenant] / self.released[tenant]


def simulate(traffic: Traffic, scheduler: Scheduler) -> Waits:
    world = traffic.world
    step, tenants = world.step_ms * 1000, world.tenants
    work, slow_work = world.work_ms // world.step_ms, world.slow_work_ms // world.step_ms
    total, longest = array("q", bytes(8 * tenants)), array("q", bytes(8 * tenants))
    released, in_flight, most = (array("l", bytes(array("l").itemsize * tenants)) for _ in range(3))
    ending: dict[int, list[int]] = defaultdict(list)
    free, came, left, idle, now = world.slots, 0, len(traffic.at), 0, 0
    number = 0
    while left > 0:
        number += 1
        now = number * step
        done = ending.pop(number, ())
        for tenant in done:
            scheduler.complete(tenant)
            in_flight[tenant] -= 1
        free += len(done)
        while came < len(traffic.at) and traffic.at[came] <= now:
            scheduler.create(traffic.tenant[came], traffic.at[came])
            came += 1
        given = scheduler.dequeue(free, now) if free else []
        for tenant, at in given:
            wait = now - at
            total[tenant] += wait
            released[tenant] += 1
            in_flight[tenant] += 1
            if wait > longest[tenant]:
                longest[tenant] = wait
            if in_flight[tenant] > most[tenant]:
                most[tenant] = in_flight[tenant]
            ending[number + (slow_work if tenant in traffic.slow else work)].append(tenant)
        free -= len(given)
        left -= len(given)
        if left > len(traffic.at) - came:
            idle += free
    return Waits(total, longest, released, most, now, idle / (number * world.slots))
