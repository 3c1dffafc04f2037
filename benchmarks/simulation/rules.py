"""The scheduling rules of the queue, as arithmetic: who is next, how much, and when again.

They are stated in docs/explanation/fairness.md and implemented in SQL; a test plays the same load on the real
queue and compares. Times are microseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 1_000_000


@dataclass(frozen=True)
class SimulatedPolicy:
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


@dataclass
class Turn:
    """One ready channel's part in a reply."""

    tenant: int
    policy: SimulatedPolicy
    # Since when it has been waiting.
    due_at: int
    # How many it could have, by what waits and by its policy.
    want: int
    # What it has had of a turn that was cut by the end of an earlier reply.
    taken: int = 0
    given: int = 0
    # It got some of what was left after whole rounds.
    is_ahead: bool = False
    # The end of this reply cuts its turn: it keeps its place.
    is_cut: bool = False


def share_reply(limit: int, turns: Sequence[Turn]) -> None:
    """Give a reply's messages to those that are ready, in the order of waiting.

    Whole rounds by weight for everybody that wants more, then a turn each of what is left.
    """
    left = limit
    while left > 0:
        wanting = [turn for turn in turns if turn.want > turn.given]
        if not wanting:
            break
        rounds = left // sum(turn.policy.weight for turn in wanting)
        for turn in wanting:
            if left == 0:
                break
            due = max(turn.policy.weight * max(rounds, 1) - turn.taken, 1)
            more = min(turn.want - turn.given, left, due)
            turn.given += more
            left -= more
            turn.is_ahead = rounds == 0
            turn.is_cut = is_cut(turn, more, left, rounds)
            turn.taken = turn.taken + more if turn.is_cut else 0


def is_cut(turn: Turn, more: int, left: int, rounds: int) -> bool:
    """Whether the reply ends in the middle of its turn; a rate limit has times instead of places."""
    is_short = turn.taken + more < turn.policy.weight and turn.want > turn.given
    return left == 0 and rounds == 0 and is_short and not turn.policy.interval
