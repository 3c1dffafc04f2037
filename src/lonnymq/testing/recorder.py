"""What a test run did: a line per attempt, and what its handlers raised."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lonnymq.client.aio import AsyncMessage
from lonnymq.model.acknowledge import Action
from lonnymq.worker.handler import Bury, Defer
from lonnymq.worker.report import Report
from lonnymq.worker.verdict import Interruption, Verdict

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.pipeline import Next


class AttemptFailed(AssertionError):
    """An attempt failed without an exception of its handler: out of time, or no handler would have it."""


@dataclass(frozen=True)
class WorkedAttempt:
    """One attempt of a test run: the message as it was, who worked it, how that ended, and why."""

    message: AsyncMessage
    handler: str
    # completed, deferred, buried, given_back, cancelled or lease_lost.
    outcome: str
    error: str | None = None


class Record(Report):
    """Stands in for a worker's report, and stands around each handler."""

    def __init__(self, name: str, news: asyncio.Event) -> None:
        super().__init__(name, Counter())
        self.attempts: list[WorkedAttempt] = []
        self.failure: BaseException | None = None
        self._raised: BaseException | None = None
        self._news = news

    async def around(self, subject: Any, call: "Next") -> None:
        """The outermost middleware: sees what is raised."""
        self._raised = None
        try:
            await call()
        except BaseException as error:
            self._raised = error
            raise

    def ended(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        super().ended(attempt, verdict, outcome)
        self._add(attempt, outcome, verdict.error)
        if verdict.error is not None:
            self._fail(attempt, f"was {outcome}: {verdict.error}")

    def lost(self, attempt: "Attempt", why: Interruption) -> None:
        super().lost(attempt, why)
        self._add(attempt, "cancelled" if why is Interruption.CANCELLED else "lease_lost", None)

    def refused(self, attempt: "Attempt", action: Action[Any], error: Exception) -> None:
        super().refused(attempt, action, error)
        self._fail(attempt, f"could not be ended: {error}")

    def _add(self, attempt: "Attempt", outcome: str, error: str | None) -> None:
        name = attempt.handler.name if attempt.handler is not None else ""
        self.attempts.append(WorkedAttempt(attempt.message, name, outcome, error))
        self._news.set()

    def _fail(self, attempt: "Attempt", what: str) -> None:
        """Remember the handler's exception, unless it said by one what it wants."""
        raised = self._raised if attempt.handler is not None else None
        if raised is None or isinstance(raised, asyncio.CancelledError):
            raised = AttemptFailed(f"message {attempt.message.id} of {attempt.message.channel!r} {what}")
        if not isinstance(raised, Defer | Bury):
            self.failure = self.failure or raised
        self._news.set()
