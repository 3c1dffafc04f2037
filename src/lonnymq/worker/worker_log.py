"""What a worker tells: a line per attempt, trouble when it begins and ends, and counts."""

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from lonnymq.calls.argument import error_text
from lonnymq.connections import outage
from lonnymq.errors import ConnectionLost
from lonnymq.model.acknowledge import ACTIONS, DEFER, Action, Effect
from lonnymq.texts import MAX_LINE, cut, line
from lonnymq.worker.verdict import Interruption, Verdict

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt

LOGGER = logging.getLogger("lonnymq.worker")

# Quiet by default: what went well is for those who want to see it.
EFFECT_LEVELS = {
    Effect.END: logging.DEBUG,
    Effect.RETURN: logging.INFO,
    Effect.RETRY: logging.WARNING,
    Effect.BURY: logging.ERROR,
}
LEVELS = {
    **{action.done.value: EFFECT_LEVELS[action.effect] for action in ACTIONS},
    "cancelled": logging.INFO,
    "lease_lost": logging.WARNING,
}
# Outcomes of several enumerations as the words they are.
PLAIN = {outcome: outcome for outcome in LEVELS}


# A worker that cannot keep up says so this often.
GIVEN_BACK_INTERVAL_S = 60.0


class WorkerLog:
    """`counts` has how many attempts ended in which way."""

    def __init__(self, worker: str, counts: Counter[str]) -> None:
        self.worker = worker
        self.counts = counts
        self._failing: set[str] = set()
        self._given_back_silent_until = 0.0

    def log_attempt(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        """One line for an attempt, when the queue has answered."""
        if attempt.interruption is Interruption.CANCELLED:
            return  # reported when that was known
        if outcome == "lease_lost" and attempt.state.is_borrowed:
            # An error after a transaction that was committed with the acknowledgement in it.
            outcome = str(attempt.state.outcome)
        elif outcome == "lease_lost" and attempt.may_be_acknowledged and verdict.action is not None:
            # An earlier try took effect, and its answer was cut off.
            outcome = verdict.action.done
        outcome = PLAIN[outcome]
        self.counts[outcome] += 1
        level = LEVELS[outcome]
        if outcome == "deferred" and verdict.error is None:
            level = logging.INFO
        elif outcome == "given_back" and attempt.handler is None:
            level = logging.DEBUG
        if LOGGER.isEnabledFor(level):
            # A handler that has deferred the message itself has not said until when.
            delay_ms = None if verdict.action is not DEFER else verdict.delay_ms or 0
            self._log_outcome(
                level, attempt, outcome, verdict.error, delay_ms if outcome == "deferred" else None
            )

    def log_lost_lease(self, attempt: "Attempt", why: Interruption) -> None:
        """One line for an attempt whose lease is gone."""
        outcome = "cancelled" if why is Interruption.CANCELLED else "lease_lost"
        self.counts[outcome] += 1
        self._log_outcome(LEVELS[outcome], attempt, outcome, None)

    def log_refusal(self, attempt: "Attempt", action: Action[Any], error: Exception) -> None:
        """One line for an action that the queue refuses; the message comes again when its lease ends."""
        if attempt.interruption is Interruption.CANCELLED:
            return
        self.counts["refused"] += 1
        self._log_outcome(logging.ERROR, attempt, f"{action.name} refused", error_text(error))

    def info(self, operation: str, **figures: int) -> None:
        """One line for the worker itself: it works, it stops, it has stopped."""
        shown = ", ".join(f"{count} {name}" for name, count in figures.items() if count)
        LOGGER.info(
            "%s%s", operation, f": {shown}" if shown else "", extra={"worker": self.worker, **figures}
        )

    def warn_given_back(self, reason: str) -> None:
        """Say at intervals that messages go back because this process cannot start them, and why."""
        now = time.monotonic()
        if now >= self._given_back_silent_until:
            self._given_back_silent_until = now + GIVEN_BACK_INTERVAL_S
            LOGGER.warning("giving back messages: %s", reason, extra={"worker": self.worker})

    def log_failure(self, operation: str, error: BaseException) -> None:
        """Say once that something does not work at the moment."""
        # Of an outage the client's own log has told.
        is_outage = isinstance(error, ConnectionLost) or outage.is_known()
        level = logging.DEBUG if is_outage or operation in self._failing else logging.WARNING
        if level == logging.WARNING:
            self._failing.add(operation)
        LOGGER.log(
            level, "%s fails, trying again: %s", operation, _first_line(error), extra={"worker": self.worker}
        )

    def log_recovery(self, operation: str) -> None:
        if operation in self._failing:
            self._failing.discard(operation)
            LOGGER.warning("%s works again", operation, extra={"worker": self.worker})

    def _log_outcome(
        self, level: int, attempt: "Attempt", outcome: str, error: str | None, next_in_ms: int | None = None
    ) -> None:
        message = attempt.message
        handler = attempt.handler.name if attempt.handler is not None else ""
        took_ms = round(((attempt.ended_at or time.monotonic()) - attempt.began_at) * 1000)
        limits = [message.max_attempts, attempt.handler.max_attempts if attempt.handler is not None else None]
        max_attempts = min((one for one in limits if one is not None), default=None)
        details: dict[str, Any] = {
            "worker": self.worker,
            "outcome": outcome,
            "message_id": message.id,
            "channel": message.channel,
            "attempt": message.attempt,
            "max_attempts": max_attempts,
            "next_in_ms": next_in_ms,
            "handler": handler,
            "took_ms": took_ms,
            "error": error,
        }
        LOGGER.log(
            level,
            "%s message %s of %r, attempt %s%s%s, %s%s",
            outcome,
            message.id,
            message.channel,
            message.attempt,
            "" if max_attempts is None else f" of {max_attempts}",
            "" if next_in_ms is None else f", next in {_duration(next_in_ms)}",
            f"by {line(handler)} in {took_ms} ms" if handler else "not begun",
            f": {_last_line(error)}" if error else "",
            extra=details,
        )


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.3g} s" if ms < 100_000 else f"{ms // 1000} s"


def _first_line(error: BaseException) -> str:
    lines = cut(str(error), MAX_LINE).splitlines()
    return line(lines[0]) if lines else type(error).__name__


def _last_line(error: str) -> str:
    """Return the line of a traceback that names the error."""
    return line(error.rstrip().splitlines()[-1]) if error.strip() else ""
