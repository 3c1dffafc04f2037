"""The scheduling rules of the queue as arithmetic: which tenant is next, its share, and its next turn.

They are explained in docs/explanation/fairness.md and implemented in SQL; tests compare the two. Times are
microseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 1_000_000

QUANTUM = 4
"""The default of the queue's setting: how many messages a turn is worth at weight 1."""


@dataclass(frozen=True)
class SimulatedPolicy:
    """A channel's policy; as in the queue, None is no limit."""

    weight: int = 1
    max_concurrency: int | None = None
    release_interval_ms: int | None = None
    release_burst: int = 1

    @property
    def interval(self) -> int:
        return (self.release_interval_ms or 0) * 1000

    def room(self, in_flight: int, release_at: int, now: int) -> int | None:
        """Return how many messages the cap and the rate allow now; None for any number."""
        limits = []
        if self.max_concurrency is not None:
            limits.append(self.max_concurrency - in_flight)
        if self.release_interval_ms is not None:
            ahead = max(now, release_at) - now
            limits.append((self.release_burst * self.interval - ahead) // self.interval)
        return max(0, min(limits)) if limits else None

    def release_after(self, release_at: int, given: int, now: int) -> int:
        """Return when the next release would be due if releases were evenly spaced."""
        return max(now, release_at) + given * self.interval

    def due_again(self, release_at: int) -> int:
        """Return when the rate allows the next message; a burst may be ahead of even spacing."""
        return release_at - (self.release_burst - 1) * self.interval


@dataclass
class Turn:
    """The part of a ready channel in a reply."""

    tenant: int
    policy: SimulatedPolicy
    # When it became due.
    due_at: int
    # The most messages it could be given, by what waits and by its policy.
    want: int
    # How many messages the turn is worth.
    size: int
    # Messages that it was given in a turn which the end of an earlier reply cut off.
    taken: int = 0
    given: int = 0
    # Whether it was given some of the messages left after whole rounds.
    is_ahead: bool = False
    # Whether the end of this reply cuts off its turn, so that it keeps its place.
    is_cut: bool = False


def quantum_for(limit: int) -> int:
    """Return how many messages a turn is worth; a short reply alternates between more channels."""
    return min(QUANTUM, max(limit // 8, 1))


def share_reply(limit: int, turns: Sequence[Turn]) -> None:
    """Divide a reply among the ready channels, in the order in which they became due.

    All channels that want more get whole rounds of turns; what is left is given out turn by turn.
    """
    left = limit
    while left > 0:
        hungry = [turn for turn in turns if turn.want > turn.given]
        if not hungry:
            break
        rounds = left // sum(turn.size for turn in hungry)
        for turn in hungry:
            if left == 0:
                break
            due = max(turn.size * max(rounds, 1) - turn.taken, 1)
            more = min(turn.want - turn.given, left, due)
            turn.given += more
            left -= more
            turn.is_ahead = rounds == 0
            turn.is_cut = is_cut(turn, more, left, rounds)
            turn.taken = turn.taken + more if turn.is_cut else 0


def is_cut(turn: Turn, more: int, left: int, rounds: int) -> bool:
    """Whether the reply ends in the middle of the turn; with a rate limit, times replace places."""
    is_short = turn.taken + more < turn.size and turn.want > turn.given
    return left == 0 and rounds == 0 and is_short and not turn.policy.interval
