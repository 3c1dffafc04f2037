"""Lets a worker know that a message it holds was acknowledged, whichever handler and client did that."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lonnymq.model import Progress
from lonnymq.model.acknowledge import ACTIONS, Outcome

LOST = frozenset({"lease_lost", "cancelled"})
ENDED = frozenset(action.done for action in ACTIONS)


@dataclass(frozen=True)
class NextStep:
    """What a message goes on with: its content and its headers, encoded, and how long it waits before."""

    content: bytes
    delay_ms: int | None
    headers: str | None


class AttemptState:
    """What is known about an attempt in a worker. Handlers write from threads, one attribute at a time."""

    # The lease no longer belongs to this attempt.
    is_lost = False
    # Acknowledgements in progress: meanwhile, the answers to other calls may be out of date.
    acknowledging = 0
    # How the handler itself ended the attempt.
    outcome: str | None = None
    # It did so on a borrowed connection, whose transaction may still be rolled back.
    is_borrowed = False
    # How far it is, as its handler last reported, and as the queue last learned with a heartbeat.
    progress: Progress | None = None
    sent_progress: Progress | None = None
    # What its task returned, encoded, if the producer asked for it.
    result: bytes | None = None
    # For a message with more steps: returns the next one, from what this one returned.
    next_step_after: Callable[[Any], NextStep] | None = None
    # That step, once this one has returned.
    next_step: NextStep | None = None
    # The state that it leaves for the next attempt or the dead letter, encoded, if it fails.
    failure_state: bytes | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether the attempt has ended, and no rollback can undo that."""
        return self.outcome is not None and not self.is_borrowed

    @property
    def unsent_progress(self) -> Progress | None:
        """What the next heartbeat is to report."""
        return None if self.progress is self.sent_progress else self.progress

    def record(self, outcome: str, is_borrowed: bool) -> None:
        """Record the queue's answer to an acknowledgement."""
        if outcome in LOST:
            self.is_lost = True
        elif outcome in ENDED:
            self.outcome, self.is_borrowed = outcome, is_borrowed


@contextmanager
def observe(
    messages: Sequence[Any], connection: object
) -> Iterator[Callable[[list[Outcome]], list[Outcome]]]:
    """Record an acknowledgement and its answers in the states of those messages that a worker holds."""
    states: list[AttemptState | None] = [getattr(message, "attempt_state", None) for message in messages]

    def record(outcomes: list[Outcome]) -> list[Outcome]:
        for state, outcome in zip(states, outcomes, strict=True):
            if state is not None:
                state.record(outcome, connection is not None)
        return outcomes

    for state in states:
        if state is not None:
            state.acknowledging += 1
    try:
        yield record
    finally:
        for state in states:
            if state is not None:
                state.acknowledging -= 1


def mark_sent(
    states: Sequence[AttemptState], progress: Sequence[Progress | None], outcomes: Sequence[Outcome]
) -> None:
    """Remember which progress the queue has learned, so that later heartbeats do not repeat it."""
    for state, sent, outcome in zip(states, progress, outcomes, strict=True):
        if sent is not None and outcome == "extended":
            state.sent_progress = sent
