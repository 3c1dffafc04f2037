"""How a worker learns what was said about a message it holds, whoever said it, and to whichever client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lonnymq.model.acknowledge import ACTIONS, Outcome

LOST = frozenset({"lease_lost", "cancelled"})
ENDED = frozenset(action.done for action in ACTIONS)


class Watch:
    """What is known of an attempt in progress. Handlers write from threads, one word at a time."""

    __slots__ = ("acknowledging", "is_lent", "is_lost", "outcome")

    def __init__(self) -> None:
        # The lease is no longer this attempt's.
        self.is_lost = False
        # Acknowledgements on their way: an answer to anything else may be older than theirs.
        self.acknowledging = 0
        # How the handler itself has ended the attempt.
        self.outcome: str | None = None
        # That was on a lent connection: its transaction may yet be rolled back.
        self.is_lent = False

    @property
    def is_told(self) -> bool:
        """Whether the queue knows for good that the attempt has ended."""
        return self.outcome is not None and not self.is_lent

    def note(self, outcome: str, is_lent: bool) -> None:
        if outcome in LOST:
            self.is_lost = True
        elif outcome in ENDED:
            self.outcome, self.is_lent = outcome, is_lent


@contextmanager
def watched(
    messages: Sequence[Any], connection: object
) -> Iterator[Callable[[list[Outcome]], list[Outcome]]]:
    """Tell the watches of these messages, where they have one, what is asked and what was answered."""
    watches: list[Watch | None] = [getattr(message, "watch", None) for message in messages]

    def note(outcomes: list[Outcome]) -> list[Outcome]:
        for watch, outcome in zip(watches, outcomes, strict=True):
            if watch is not None:
                watch.note(outcome, connection is not None)
        return outcomes

    for watch in watches:
        if watch is not None:
            watch.acknowledging += 1
    try:
        yield note
    finally:
        for watch in watches:
            if watch is not None:
                watch.acknowledging -= 1
