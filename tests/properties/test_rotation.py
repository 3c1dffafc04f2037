"""Nobody waits longer than the bounds in docs/explanation/fairness.md, whatever arrives meanwhile.

LONNYMQ_PROPERTY_EXAMPLES tries that many arrival patterns, new ones each time.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql.session import Session

EXAMPLES = os.environ.get("LONNYMQ_PROPERTY_EXAMPLES")
TENANTS = 8
TABLES = "message, lease, wake, turn, channel"


@dataclass(frozen=True)
class Arrival:
    """Messages that are created before a dequeue: of a tenant, or of channels with new names."""

    tenant: int | None
    count: int
    is_urgent: bool


@dataclass
class Wait:
    """A channel that waits for its next turn, and how many messages of others may come first."""

    bound: float
    passed: int = 0


@dataclass
class Watch:
    """Follows each channel's wait, by the definitions of the two bounds and not by the rules of the queue."""

    limit: int
    waiting: Counter[str] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    returning: set[str] = field(default_factory=set)
    waits: dict[str, Wait] = field(default_factory=dict)

    @property
    def turn(self) -> int:
        return max(1, min(4, self.limit // 8))

    def create(self, channel: str, count: int) -> None:
        if not self.waiting[channel]:
            self.returning.add(channel)
        self.waiting[channel] += count

    def serve(self, reply: list[str]) -> None:
        for channel in self.returning - self.waits.keys():
            # One turn of each that returned earlier or together with it, as many of the rotation (one more
            # per reply if the limit is odd), and two replies.
            share = self.limit / (self.limit // 2) if self.limit > 1 else 2
            self.waits[channel] = Wait(share * self.turn * len(self.returning) + 2 * self.limit)
        for channel in reply:
            for other, wait in self.waits.items():
                wait.passed += other != channel
                assert wait.passed <= wait.bound, f"{other} waits too long"
            self.waiting[channel] -= 1
            self.waits.pop(channel, None)
            self.returning.discard(channel)
        for channel in set(reply):
            self.known.add(channel)
            if self.waiting[channel]:
                ahead = sum(1 for one, count in self.waiting.items() if count and one in self.known) - 1
                self.waits[channel] = Wait(2 * self.turn * ahead + 2 * self.limit)


@pytest.fixture
def queue(connect: Callable[..., Any]) -> Session:
    return Session(connect())


arrivals = st.builds(
    Arrival,
    tenant=st.none() | st.integers(0, TENANTS - 1),
    count=st.sampled_from([1, 1, 1, 5, 30]),
    is_urgent=st.booleans(),
)


@settings(
    max_examples=int(EXAMPLES or 25),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    limit=st.sampled_from([1, 2, 5, 16, 40]),
    backlog=st.lists(st.integers(1, 300), min_size=1, max_size=TENANTS),
    steps=st.lists(st.lists(arrivals, max_size=3), min_size=20, max_size=60),
)
def test_nobody_waits_longer_than_the_bounds(
    queue: Session, limit: int, backlog: list[int], steps: list[list[Arrival]]
) -> None:
    queue.run(f"truncate {TABLES}")
    watch = Watch(limit)
    for tenant, count in enumerate(backlog):
        queue.fill(f"tenant{tenant}", count)
        watch.create(f"tenant{tenant}", count)
    names = 0
    for step in steps:
        for arrival in step:
            options: dict[str, Any] = {"dequeue_ats": [-1_000] * arrival.count} if arrival.is_urgent else {}
            if arrival.tenant is None:
                channels = [f"new{names + n}" for n in range(arrival.count)]
                names += arrival.count
                queue.create_many(channels, **options)
                for channel in channels:
                    watch.create(channel, 1)
            else:
                queue.fill(f"tenant{arrival.tenant}", arrival.count, **options)
                watch.create(f"tenant{arrival.tenant}", arrival.count)
        replies = [one for one in queue.dequeue_once(limit) if one.outcome == "leased"]
        watch.serve([one.channel for one in replies])
        queue.complete(replies)
    assert queue.problems() == []
