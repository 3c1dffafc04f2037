"""Schedulers that choose the next message: the queue's rotation of tenants, and FIFO."""

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from benchmarks.simulation.rules import SimulatedPolicy, Turn, quantum_for, share_reply

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
    """Tenants take turns, least recently served first, each with its share, within caps and rates.

    A tenant that returns from idleness has a place among those that return, too. The rotation and they
    are served alternately. All tenants count as known: none is new.
    """

    def __init__(self, tenants: int, policy_of: Callable[[int], SimulatedPolicy]) -> None:
        self.policy_of = policy_of
        self.waiting: dict[int, deque[int]] = {}
        self.last_at = array("q", bytes(8 * tenants))
        self.release_at = array("q", bytes(8 * tenants))
        self.in_flight = array("l", bytes(array("l").itemsize * tenants))
        self.taken: dict[int, int] = {}
        # A heap of turns by due time, at most one per tenant. Tenants without one are parked: empty or full.
        self.turns: list[tuple[int, int]] = []
        self.returning: deque[tuple[int, int]] = deque()
        # When each tenant's turn is due; -1 if it has none. Places with another time are outdated.
        self.due_at = array("q", [-1]) * tenants
        self.skipped_rotation = False

    def create(self, tenant: int, at: int) -> None:
        is_idle = tenant not in self.waiting
        if is_idle:
            self.waiting[tenant] = deque()
        self.waiting[tenant].append(at)
        if self.due_at[tenant] < 0 and not self.is_full(tenant):
            self.schedule(tenant, max(self.last_at[tenant], at))
            if is_idle:
                self.returning.append((self.due_at[tenant], tenant))

    def complete(self, tenant: int) -> None:
        was_full = self.is_full(tenant)
        self.in_flight[tenant] -= 1
        if was_full and tenant in self.waiting and self.due_at[tenant] < 0:
            # It returns to the place that its last release determines.
            self.schedule(tenant, self.last_at[tenant])

    def dequeue(self, limit: int, now: int) -> list[Release]:
        quantum = quantum_for(limit)
        released: list[Release] = []
        turns = (limit - 1) // quantum + 1
        while len(released) < limit:
            left = limit - len(released)
            ready = self.ready(left, turns, quantum, now)
            if not ready:
                break
            share_reply(left, ready)
            for place, turn in enumerate(ready, start=1):
                # Tenants keep their order; those given some of the remaining messages stand behind.
                behind = 0 if turn.policy.interval else len(ready) * (1 if turn.is_ahead else 2) - place
                self.serve(turn, now, turn.due_at if turn.is_cut else now - behind, released)
            turns = limit - len(released)
        return released

    def ready(self, left: int, turns: int, quantum: int, now: int) -> list[Turn]:
        """Take turns that may be given messages, the rotation's and those that return alternately."""
        returns_first = left == 1 and not self.skipped_rotation
        returning = self.take(self.returning.popleft, self.returning, (left + 1) // 2, quantum, now)
        self.skipped_rotation = returns_first and bool(returning)
        if self.skipped_rotation:
            return returning
        if returning:
            turns = max(turns, (left + 1) // 2)
        both = returning + self.take(lambda: heapq.heappop(self.turns), self.turns, turns, quantum, now)
        places: dict[int, float] = {
            turn.tenant: place for place, turn in enumerate(sorted(both, key=order), start=1)
        }
        for place, turn in enumerate(sorted(returning, key=order), start=1):
            places[turn.tenant] = min(2 * places[turn.tenant], 2 * place + 1) / 2
            if sum(one.size for one in both) > left:
                turn.size = quantum
        both.sort(key=lambda turn: places[turn.tenant])
        for turn in both[left:]:
            self.serve(turn, now, turn.due_at, [])
            if turn in returning:
                self.returning.appendleft((turn.due_at, turn.tenant))
        return both[:left]

    def take(
        self,
        pop: Callable[[], tuple[int, int]],
        places: Sequence[tuple[int, int]],
        count: int,
        quantum: int,
        now: int,
    ) -> list[Turn]:
        """Take so many due turns; those whose policy allows no message are put off."""
        ready: list[Turn] = []
        while count > 0 and places and places[0][0] <= now:
            due_at, tenant = pop()
            if self.due_at[tenant] != due_at:
                continue
            count -= 1
            self.due_at[tenant] = -1
            policy = self.policy_of(tenant)
            want = len(self.waiting[tenant])
            room = policy.room(self.in_flight[tenant], self.release_at[tenant], now)
            if room is not None:
                want = min(want, room)
            turn = Turn(tenant, policy, due_at, want, policy.weight * quantum, self.taken.pop(tenant, 0))
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
        self.due_at[tenant] = at
        heapq.heappush(self.turns, (at, tenant))

    def is_full(self, tenant: int) -> bool:
        cap = self.policy_of(tenant).max_concurrency
        return cap is not None and self.in_flight[tenant] >= cap


def order(turn: Turn) -> tuple[int, int]:
    return turn.due_at, turn.tenant


def same_policy(policy: SimulatedPolicy) -> Callable[[int], SimulatedPolicy]:
    return lambda tenant: policy


def policy_for_some(
    tenants: Iterable[int], policy: SimulatedPolicy, others: SimulatedPolicy
) -> Callable[[int], SimulatedPolicy]:
    chosen = frozenset(tenants)
    return lambda tenant: policy if tenant in chosen else others
