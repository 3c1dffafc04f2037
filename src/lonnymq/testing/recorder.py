"""Records a test run: its attempts, and the exceptions of its handlers."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lonnymq.client.aio import AsyncMessage
from lonnymq.model.acknowledge import Action
from lonnymq.worker.handler import Bury, Defer
from lonnymq.worker.verdict import Interruption, Verdict
from lonnymq.worker.worker_log import WorkerLog

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.middleware import Next


class AttemptFailed(AssertionError):
    """An attempt failed without an exception of its handler: it timed out, or no handler accepted it."""


@dataclass(frozen=True)
class ProcessedAttempt:
    """One attempt of a test run: the message as leased, its handler, the outcome and the error."""

    message: AsyncMessage
    handler: str
    # completed, advanced, deferred, buried, given_back, cancelled or lease_lost.
    outcome: str
    error: str | None = None


class Recorder(WorkerLog):
    """Replaces a worker's log, and wraps each handler."""

    def __init__(self, name: str, activity: asyncio.Event) -> None:
        super().__init__(name, Counter())
        self.attempts: list[ProcessedAttempt] = []
        self.failure: BaseException | None = None
        self._raised: BaseException | None = None
        self._activity = activity

    async def around(self, subject: Any, call: "Next") -> None:
        """Record what the handler raises, as the outermost middleware."""
        self._raised = None
        try:
            await call()
        except BaseException as error:
            self._raised = error
            raise

    def log_attempt(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        super().log_attempt(attempt, verdict, outcome)
        self._add(attempt, outcome, verdict.error)
        if verdict.error is not None:
            self._fail(attempt, f"was {outcome}: {verdict.error}")

    def log_lost_lease(self, attempt: "Attempt", why: Interruption) -> None:
        super().log_lost_lease(attempt, why)
        self._add(attempt, "cancelled" if why is Interruption.CANCELLED else "lease_lost", None)

    def log_refusal(self, attempt: "Attempt", action: Action[Any], error: Exception) -> None:
        super().log_refusal(attempt, action, error)
        self._fail(attempt, f"could not be ended: {error}")

    def _add(self, attempt: "Attempt", outcome: str, error: str | None) -> None:
        name = attempt.handler.name if attempt.handler is not None else ""
        self.attempts.append(ProcessedAttempt(attempt.message, name, outcome, error))
        self._activity.set()

    def _fail(self, attempt: "Attempt", description: str) -> None:
        """Keep the handler's exception, unless it is Defer or Bury, which decide the outcome."""
        raised = self._raised if attempt.handler is not None else None
        if raised is None or isinstance(raised, asyncio.CancelledError):
            raised = AttemptFailed(
                f"message {attempt.message.id} of {attempt.message.channel!r} {description}"
            )
        if not isinstance(raised, Defer | Bury):
            self.failure = self.failure or raised
        self._activity.set()
