"""The scheduling rules of the queue, as arithmetic: who is next, how much, and when again.

They are stated in docs/explanation/fairness.md and implemented in SQL; a test plays the same load on the real
queue and compares. Times are microseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 1_000_000


@dataclass(frozen=True)
class Policy:
    """What a channel is allowed; as in the queue, None is no limit."""

    weight: int = 1
    max_concurrency: int | None = None
    release_interval_ms: int | None = None
    release_burst: int = 1

    @property
    def interval(self) -> int:
        return (self.release_interval_ms or 0) * 1000

    def room(self, in_flight: int, release_at: int, now: int) -> int | None:
        """Return how many it may have now by its cap and its rate; None for any number."""
        rooms = []
        if self.max_concurrency is not None:
            rooms.append(self.max_concurrency - in_flight)
        if self.release_interval_ms is not None:
            ahead = max(now, release_at) - now
            rooms.append((self.release_burst * self.interval - ahead) // self.interval)
        return max(0, min(rooms)) if rooms else None

    def release_after(self, release_at: int, given: int, now: int) -> int:
        """Return when the next release would be due, if releases were evenly spaced."""
        return max(now, release_at) + given * self.interval

    def due_again(self, release_at: int) -> int:
        """Return when its rate allows the next message: a burst may be ahead of even spacing."""
        return release_at - (self.release_burst - 1) * self.interval


def shares(limit: int, weights: Sequence[int], wants: Sequence[int]) -> tuple[list[int], list[bool]]:
    """Return what each of the ready gets of a reply, in the order of waiting, and who got some of the rest.

    Whole rounds by weight for everybody that wants more, then what is left in order of waiting.
    """
    given = [0] * len(wants)
    is_ahead = [False] * len(wants)
    left = limit
    while left > 0:
        weight = sum(weight for weight, want, got in zip(weights, wants, given, strict=True) if want > got)
        if weight == 0:
            break
        rounds = left // weight
        for place, want in enumerate(wants):
            if want > given[place] and left > 0:
                more = min(want - given[place], left, weights[place] * max(rounds, 1))
                given[place] += more
                left -= more
                is_ahead[place] = rounds == 0
    return given, is_ahead
