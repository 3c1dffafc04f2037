"""How a worker learns that a message it holds was acknowledged, by whichever handler and client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lonnymq.model.acknowledge import ACTIONS, Outcome

LOST = frozenset({"lease_lost", "cancelled"})
ENDED = frozenset(action.done for action in ACTIONS)


class AttemptState:
    """What is known of an attempt in a worker. Handlers write from threads, one attribute at a time."""

    __slots__ = ("acknowledging", "is_borrowed", "is_lost", "outcome")

    def __init__(self) -> None:
        # The lease is no longer this attempt's.
        self.is_lost = False
        # Acknowledgements on their way: an answer to anything else may be older than theirs.
        self.acknowledging = 0
        # How the handler itself has ended the attempt.
        self.outcome: str | None = None
        # That was on a borrowed connection: its transaction may yet be rolled back.
        self.is_borrowed = False

    @property
    def is_acknowledged(self) -> bool:
        """Whether the queue knows for good that the attempt has ended."""
        return self.outcome is not None and not self.is_borrowed

    def note(self, outcome: str, is_borrowed: bool) -> None:
        """Keep what the queue has answered to an acknowledgement."""
        if outcome in LOST:
            self.is_lost = True
        elif outcome in ENDED:
            self.outcome, self.is_borrowed = outcome, is_borrowed


@contextmanager
def observe(
    messages: Sequence[Any], connection: object
) -> Iterator[Callable[[list[Outcome]], list[Outcome]]]:
    """Note an acknowledgement and its answers in the states of these messages, where a worker keeps one."""
    states: list[AttemptState | None] = [getattr(message, "attempt_state", None) for message in messages]

    def note(outcomes: list[Outcome]) -> list[Outcome]:
        for state, outcome in zip(states, outcomes, strict=True):
            if state is not None:
                state.note(outcome, connection is not None)
        return outcomes

    for state in states:
        if state is not None:
            state.acknowledging += 1
    try:
        yield note
    finally:
        for state in states:
            if state is not None:
                state.acknowledging -= 1
