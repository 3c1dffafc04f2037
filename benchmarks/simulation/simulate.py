"""Simulates traffic with a scheduler: at every step, workers ask for messages for their free slots."""

from array import array
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.simulation.schedulers import Scheduler
from benchmarks.simulation.traffic import Traffic


@dataclass(frozen=True)
class Waits:
    """How long each tenant's messages waited, in microseconds, and how busy the workers were."""

    total: "array[int]"
    longest: "array[int]"
    released: "array[int]"
    max_in_flight: "array[int]"
    ended_at: int
    # The share of slot time that was free while messages waited: what a policy leaves unused on purpose.
    idle_share: float

    def mean(self, tenant: int) -> float:
        return self.total[tenant] / self.released[tenant]


def simulate(traffic: Traffic, scheduler: Scheduler) -> Waits:
    parameters = traffic.parameters
    step, tenants = parameters.step_ms * 1000, parameters.tenants
    work, slow_work = parameters.work_ms // parameters.step_ms, parameters.slow_work_ms // parameters.step_ms
    total, longest = array("q", bytes(8 * tenants)), array("q", bytes(8 * tenants))
    released, in_flight, most = (array("l", bytes(array("l").itemsize * tenants)) for _ in range(3))
    ending: dict[int, list[int]] = defaultdict(list)
    free, arrived, left, idle, now = parameters.slots, 0, len(traffic.at), 0, 0
    number = 0
    while left > 0:
        number += 1
        now = number * step
        done = ending.pop(number, ())
        for tenant in done:
            scheduler.complete(tenant)
            in_flight[tenant] -= 1
        free += len(done)
        while arrived < len(traffic.at) and traffic.at[arrived] <= now:
            scheduler.create(traffic.tenant[arrived], traffic.at[arrived])
            arrived += 1
        released_now = scheduler.dequeue(free, now) if free else []
        for tenant, at in released_now:
            wait = now - at
            total[tenant] += wait
            released[tenant] += 1
            in_flight[tenant] += 1
            if wait > longest[tenant]:
                longest[tenant] = wait
            if in_flight[tenant] > most[tenant]:
                most[tenant] = in_flight[tenant]
            ending[number + (slow_work if tenant in traffic.slow else work)].append(tenant)
        free -= len(released_now)
        left -= len(released_now)
        if left > len(traffic.at) - arrived:
            idle += free
    return Waits(total, longest, released, most, now, idle / (number * parameters.slots))
