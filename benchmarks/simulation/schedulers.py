"""Schedulers that choose the next message: the queue's rotation of tenants, and FIFO."""

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from benchmarks.simulation.rules import SimulatedPolicy, Turn, share_reply

Release = tuple[int, int]


class Scheduler(Protocol):
    """A queue. A message is its tenant and its time of creation; times are microseconds."""

    def create(self, tenant: int, at: int) -> None: ...

    def dequeue(self, limit: int, now: int) -> list[Release]:
        """Return at most `limit` messages to be processed now, as tenant and time of creation."""
        ...

    def complete(self, tenant: int) -> None: ...


class Fifo:
    """One queue for all tenants."""

    def __init__(self) -> None:
        self.messages: deque[Release] = deque()

    def create(self, tenant: int, at: int) -> None:
        self.messages.append((tenant, at))

    def dequeue(self, limit: int, now: int) -> list[Release]:
        return [self.messages.popleft() for _ in range(min(limit, len(self.messages)))]

    def complete(self, tenant: int) -> None:
        pass


class Rotation:
    """Tenants take turns, least recently served first, each with its share, within caps and rates."""

    def __init__(self, tenants: int, policy_of: Callable[[int], SimulatedPolicy]) -> None:
        self.policy_of = policy_of
        self.waiting: dict[int, deque[int]] = {}
        self.last_at = array("q", bytes(8 * tenants))
        self.release_at = array("q", bytes(8 * tenants))
        self.in_flight = array("l", bytes(array("l").itemsize * tenants))
        self.taken: dict[int, int] = {}
        # A heap of turns by due time, at most one per tenant. Tenants without one are parked: empty or full.
        self.turns: list[tuple[int, int]] = []
        self.has_turn = bytearray(tenants)

    def create(self, tenant: int, at: int) -> None:
        waiting = self.waiting.get(tenant)
        if waiting is None:
            waiting = self.waiting[tenant] = deque()
        waiting.append(at)
        if not self.has_turn[tenant] and not self.is_full(tenant):
            self.schedule(tenant, max(self.last_at[tenant], at))

    def complete(self, tenant: int) -> None:
        was_full = self.is_full(tenant)
        self.in_flight[tenant] -= 1
        if was_full and tenant in self.waiting and not self.has_turn[tenant]:
            # It returns to the place that its last release determines.
            self.schedule(tenant, self.last_at[tenant])

    def dequeue(self, limit: int, now: int) -> list[Release]:
        ready = self.due(limit, now)
        share_reply(limit, ready)
        released: list[Release] = []
        for place, turn in enumerate(ready, start=1):
            # Tenants keep their order; those given some of the remaining messages stand behind the others.
            behind = 0 if turn.policy.interval else len(ready) * (1 if turn.is_ahead else 2) - place
            self.serve(turn, now, turn.due_at if turn.is_cut else now - behind, released)
        return released

    def due(self, limit: int, now: int) -> list[Turn]:
        """Take the due turns that may be given messages, at most one per message of the reply."""
        ready: list[Turn] = []
        for _ in range(limit):
            if not self.turns or self.turns[0][0] > now:
                break
            due_at, tenant = heapq.heappop(self.turns)
            self.has_turn[tenant] = 0
            policy = self.policy_of(tenant)
            want = len(self.waiting[tenant])
            room = policy.room(self.in_flight[tenant], self.release_at[tenant], now)
            if room is not None:
                want = min(want, room)
            turn = Turn(tenant, policy, due_at, want, self.taken.pop(tenant, 0))
            if want:
                ready.append(turn)
            else:
                self.serve(turn, now, due_at, [])
        return ready

    def serve(self, turn: Turn, now: int, served_at: int, released: list[Release]) -> None:
        """Release the messages that a turn was given, and schedule the tenant's next turn."""
        tenant, policy, given = turn.tenant, turn.policy, turn.given
        waiting = self.waiting[tenant]
        for _ in range(given):
            released.append((tenant, waiting.popleft()))
        if given:
            self.last_at[tenant] = max(served_at, self.last_at[tenant])
            self.in_flight[tenant] += given
            if policy.interval:
                self.release_at[tenant] = policy.release_after(self.release_at[tenant], given, now)
        if turn.taken:
            self.taken[tenant] = turn.taken
        if not waiting:
            del self.waiting[tenant]
        elif not self.is_full(tenant):
            next_at = max(self.last_at[tenant], waiting[0]) if given else turn.due_at
            self.schedule(tenant, max(next_at, policy.due_again(self.release_at[tenant])))

    def schedule(self, tenant: int, at: int) -> None:
        self.has_turn[tenant] = 1
        heapq.heappush(self.turns, (at, tenant))

    def is_full(self, tenant: int) -> bool:
        cap = self.policy_of(tenant).max_concurrency
        return cap is not None and self.in_flight[tenant] >= cap


def same_policy(policy: SimulatedPolicy) -> Callable[[int], SimulatedPolicy]:
    return lambda tenant: policy


def policy_for_some(
    tenants: Iterable[int], policy: SimulatedPolicy, others: SimulatedPolicy
) -> Callable[[int], SimulatedPolicy]:
    chosen = frozenset(tenants)
    return lambda tenant: policy if tenant in chosen else others
