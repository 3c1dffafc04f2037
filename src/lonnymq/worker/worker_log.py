"""What a worker logs and counts: a line per attempt, and failures when they begin and end."""

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from lonnymq.calls.argument import error_text
from lonnymq.connections import outage
from lonnymq.errors import ConnectionLost
from lonnymq.model import Watched
from lonnymq.model.acknowledge import ACTIONS, DEFER, Action, Effect
from lonnymq.texts import MAX_LINE, one_line, truncate
from lonnymq.worker.verdict import Interruption, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from lonnymq.worker.attempt import Attempt

LOGGER = logging.getLogger("lonnymq.worker")

# Success is logged at DEBUG only, so that the default level shows what needs attention.
EFFECT_LEVELS = {
    Effect.END: logging.DEBUG,
    Effect.NEXT: logging.DEBUG,
    Effect.RETURN: logging.INFO,
    Effect.RETRY: logging.WARNING,
    Effect.BURY: logging.ERROR,
}
LEVELS = {
    **{action.done.value: EFFECT_LEVELS[action.effect] for action in ACTIONS},
    "cancelled": logging.INFO,
    "lease_lost": logging.WARNING,
}
# Outcomes are members of several enumerations; as keys of `counts` they are plain strings.
PLAIN_OUTCOMES = {outcome: outcome for outcome in LEVELS}


# The most names of dead workers in a line.
MAX_NAMES = 10
# How often a worker that cannot keep up says so.
GIVING_BACK_INTERVAL_S = 60.0


class WorkerLog:
    """`counts` has how many attempts ended with which outcome."""

    def __init__(
        self, worker: str, counts: Counter[str], record: "Callable[[Attempt, str], None] | None" = None
    ) -> None:
        self.worker = worker
        self.counts = counts
        # Called with each attempt that has ended and with its outcome.
        self._record = record
        # Operations whose failure was logged and which have not succeeded since.
        self._failing: set[str] = set()
        self._next_giving_back_at = 0.0

    def log_attempt(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        """Log an attempt once the queue has answered its acknowledgement."""
        if attempt.interruption is Interruption.CANCELLED:
            return  # Logged when the worker noticed.
        if outcome == "lease_lost" and attempt.state.is_borrowed:
            # An error after a transaction that had committed with the acknowledgement in it.
            outcome = str(attempt.state.outcome)
        elif outcome == "lease_lost" and attempt.may_be_acknowledged and verdict.action is not None:
            # An earlier acknowledgement took effect, and its answer was lost.
            outcome = verdict.action.done
        outcome = PLAIN_OUTCOMES[outcome]
        self.counts[outcome] += 1
        if self._record is not None:
            self._record(attempt, outcome)
        level = LEVELS[outcome]
        if outcome == "deferred" and verdict.error is None:
            level = logging.INFO
        elif outcome == "given_back" and attempt.handler is None:
            level = logging.DEBUG
        if LOGGER.isEnabledFor(level):
            # If the handler deferred the message itself, the delay is unknown here.
            delay_ms = None if verdict.action is not DEFER else verdict.delay_ms or 0
            next_in_ms = delay_ms if outcome == "deferred" else None
            self._log_outcome(level, attempt, outcome, verdict.error, next_in_ms)

    def log_lost_lease(self, attempt: "Attempt", why: Interruption) -> None:
        """Log an attempt whose lease was lost or whose message was cancelled."""
        outcome = "cancelled" if why is Interruption.CANCELLED else "lease_lost"
        self.counts[outcome] += 1
        if self._record is not None:
            self._record(attempt, outcome)
        self._log_outcome(LEVELS[outcome], attempt, outcome, None)

    def log_refusal(self, attempt: "Attempt", action: Action[Any], error: Exception) -> None:
        """Log an acknowledgement that the queue refuses; the message is delivered again after its lease."""
        if attempt.interruption is Interruption.CANCELLED:
            return
        self.counts["refused"] += 1
        if self._record is not None:
            self._record(attempt, "refused")
        self._log_outcome(logging.ERROR, attempt, f"{action.name} refused", error_text(error))

    def info(self, event: str, **counts: int) -> None:
        """Log an event of the worker itself, with the counts that are not 0."""
        shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        suffix = f": {shown}" if shown else ""
        LOGGER.info("%s%s", event, suffix, extra={"worker": self.worker, **counts})

    def warn_giving_back(self, reason: str) -> None:
        """Warn, at most once a minute, that this process gives back messages that it cannot start."""
        now = time.monotonic()
        if now >= self._next_giving_back_at:
            self._next_giving_back_at = now + GIVING_BACK_INTERVAL_S
            LOGGER.warning("giving back messages: %s", reason, extra={"worker": self.worker})

    def warn_dead_workers(self, watched: Watched) -> None:
        """Warn that leases of other workers were ended early, because their sessions are gone."""
        leases = "1 lease" if watched.leases == 1 else f"{watched.leases} leases"
        names = ", ".join(one_line(name) for name in watched.workers[:MAX_NAMES])
        more = len(watched.workers) - MAX_NAMES
        LOGGER.warning(
            "ended %s early, because the session of the worker is gone: %s%s",
            *(leases, names, f" and {more} more" if more > 0 else ""),
            extra={"worker": self.worker, "dead_workers": watched.workers, "leases": watched.leases},
        )

    def log_failure(self, operation: str, error: BaseException) -> None:
        """Warn once that an operation fails, until it succeeds again."""
        # The client logs outages itself.
        is_outage = isinstance(error, ConnectionLost) or outage.is_known()
        level = logging.DEBUG if is_outage or operation in self._failing else logging.WARNING
        if level == logging.WARNING:
            self._failing.add(operation)
        reason = _first_line(error)
        LOGGER.log(level, "%s failed, trying again: %s", operation, reason, extra={"worker": self.worker})

    def log_recovery(self, operation: str) -> None:
        """Log that an operation succeeds again, if its failure was logged."""
        if operation in self._failing:
            self._failing.discard(operation)
            LOGGER.warning("%s works again", operation, extra={"worker": self.worker})

    def _log_outcome(
        self, level: int, attempt: "Attempt", outcome: str, error: str | None, next_in_ms: int | None = None
    ) -> None:
        message = attempt.message
        handler = attempt.handler.name if attempt.handler is not None else ""
        took_ms = round(((attempt.ended_at or time.monotonic()) - attempt.started_at) * 1000)
        limits = [message.max_attempts, attempt.handler.max_attempts if attempt.handler is not None else None]
        max_attempts = min((one for one in limits if one is not None), default=None)
        fields: dict[str, Any] = {
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
            f"by {one_line(handler)} in {took_ms} ms" if handler else "not started",
            f": {_last_line(error)}" if error else "",
            extra=fields,
        )


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.3g} s" if ms < 100_000 else f"{ms // 1000} s"


def _first_line(error: BaseException) -> str:
    lines = truncate(str(error), MAX_LINE).splitlines()
    return one_line(lines[0]) if lines else type(error).__name__


def _last_line(error: str) -> str:
    """Return the line of a traceback that names the error."""
    return one_line(error.rstrip().splitlines()[-1]) if error.strip() else ""
