"""Sends acknowledgements in batches, so that a message does not cost a round trip of its own."""

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import psycopg

from lonnymq.calls import argument
from lonnymq.client.aio.acknowledger import acknowledge
from lonnymq.client.aio.caller import MAX_BATCH
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, ConnectionLost, LonnyError
from lonnymq.model.acknowledge import ACTIONS, ADVANCE, BURY, DEFER, GIVE_BACK, Action
from lonnymq.worker.timeouts import call_within, timeout_for
from lonnymq.worker.verdict import GIVEN_BACK, Verdict
from lonnymq.worker.wakeup import set_done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lonnymq.client.aio import AsyncMessage
    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.worker_log import WorkerLog

    Ended = tuple[Attempt, Verdict]

# A call is sent once this many attempts have ended, or this long after the first of them; at once if nothing
# else runs.
BATCH_SIZE = 100
LINGER_S = 0.002
# No call carries more bytes than this, unless a single attempt does.
BATCH_BYTES = 1024 * 1024
# How long to wait before asking again about a locked lease.
BUSY_RETRY_S = 0.05
# Errors of the acknowledgement itself and not of the database's state: a retry would fail again.
REFUSED_ERRORS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)


class Acknowledger:
    """Keeps each verdict until the queue has answered."""

    def __init__(
        self,
        caller: "AsyncCaller",
        inventory: "Inventory",
        log: "WorkerLog",
        call_timeout_s: float,
        message_ended: "Callable[[AsyncMessage, str], None]",
        for_large_states: "Acknowledger | None" = None,
    ) -> None:
        self._caller = caller
        self._inventory = inventory
        self._log = log
        self._call_timeout_s = call_timeout_s
        # Called once the queue has answered.
        self._message_ended = message_ended
        # Large states go through another acknowledger, so that small ones do not wait behind them.
        self._for_large_states = for_large_states
        self._backoff = Backoff()
        self._pending: list[Ended] = []
        self._signal: asyncio.Future[None] | None = None

    def give_back(self, attempt: "Attempt") -> None:
        """Return a message that was not processed; no attempt is spent."""
        self.add(attempt, GIVEN_BACK)

    def add(self, attempt: "Attempt", verdict: Verdict) -> None:
        """Take over the verdict on an attempt, to be sent soon."""
        if attempt not in self._inventory.held:
            return  # Its lease was lost, and that was logged when it was noticed.
        if attempt.state.outcome is not None and (verdict.is_success or not attempt.state.is_borrowed):
            # The handler has acknowledged the message itself. On a borrowed connection, an error may have
            # rolled that back.
            self._finish(attempt, verdict, attempt.state.outcome)
        elif verdict.action is None or (attempt.state.is_lost and verdict.action is not GIVE_BACK):
            self._finish(attempt, verdict, "lease_lost")
        else:
            if verdict.kept:
                self._inventory.memory.reserve(attempt, verdict.kept)
            self._enqueue(attempt, verdict)

    async def run(self) -> None:
        """Acknowledge until cancelled. While a call is running, the next batch gathers."""
        while True:
            if not self._pending:
                await self._wait_for_pending()
            is_idle = not (self._inventory.occupied_slots or self._inventory.waiting)
            if len(self._pending) < BATCH_SIZE and not is_idle:
                await self._wait_for_pending(LINGER_S)
            await self._flush()

    def _enqueue(self, attempt: "Attempt", verdict: Verdict) -> None:
        if self._for_large_states is not None and verdict.size > BATCH_BYTES:
            self._for_large_states._enqueue(attempt, verdict)
            return
        self._pending.append((attempt, verdict))
        if self._signal is not None and len(self._pending) in (1, BATCH_SIZE):
            set_done(self._signal)

    async def _wait_for_pending(self, timeout_s: float | None = None) -> None:
        """Wait for the first verdict of a batch or, with a timeout, until the batch is large enough."""
        loop = asyncio.get_running_loop()
        self._signal = loop.create_future()
        timer = None if timeout_s is None else loop.call_later(timeout_s, set_done, self._signal)
        await self._signal
        self._signal = None
        if timer is not None:
            timer.cancel()

    async def _flush(self) -> None:
        pending, self._pending = self._pending, []
        by_action: defaultdict[Action[Any] | None, list[Ended]] = defaultdict(list)
        for ended in pending:
            by_action[ended[1].action].append(ended)
        for action in ACTIONS:
            for batch in _batches(by_action[action]):
                await self._acknowledge(action, batch)

    async def _acknowledge(self, action: Action[Any], batch: "Sequence[Ended]") -> None:
        timeout_s = timeout_for(self._call_timeout_s, _size(batch))
        messages = [attempt.message for attempt, _ in batch]
        details = [[getattr(verdict, name) for _, verdict in batch] for name in action.details]
        # A locked lease must not hold up the others, so it is asked about again in a later call.
        call = acknowledge(self._caller, action, messages, details, repeat_busy=False)
        try:
            answers = await call_within(self._caller.source, timeout_s, call)
        except Exception as error:  # noqa: BLE001 - the worker continues after any error
            if isinstance(error, REFUSED_ERRORS) or (
                isinstance(error, LonnyError) and not isinstance(error, ConnectionLost | Busy)
            ):
                await self._acknowledge_individually(action, batch, error)
                return
            if getattr(error, "may_have_happened", True):
                for attempt, _ in batch:
                    attempt.may_be_acknowledged = True
            self._pending.extend(batch)
            self._log.log_failure("acknowledgement", error)
            await asyncio.sleep(self._backoff.next_s())
        else:
            self._backoff.reset()
            self._log.log_recovery("acknowledgement")
            for (attempt, verdict), answer in zip(batch, answers, strict=True):
                if answer == "busy":
                    # Another transaction has locked the lease.
                    asyncio.get_running_loop().call_later(BUSY_RETRY_S, self._enqueue, attempt, verdict)
                else:
                    self._finish(attempt, verdict, answer)

    async def _acknowledge_individually(
        self, action: Action[Any], batch: "Sequence[Ended]", error: Exception
    ) -> None:
        """Find the acknowledgement that the queue refuses, and let the others take effect."""
        attempt, verdict = batch[0]
        if len(batch) > 1:
            for ended in batch:
                await self._acknowledge(action, [ended])
        elif verdict.state is not None:
            # The next attempt starts without a state, and the error says why.
            reason = argument.error_text(f"the state was refused: {error}")
            self._enqueue(attempt, Verdict(DEFER, verdict.delay_ms, error=reason))
        elif action is ADVANCE:
            # The handler has done its work: a retry would do it again, and fail in the same way.
            reason = argument.error_text(f"the work is done, but its next step was refused: {error}")
            self._enqueue(attempt, Verdict(BURY, error=reason))
        else:
            self._log.log_refusal(attempt, action, error)
            self._inventory.remove(attempt)

    def _finish(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        self._log.log_attempt(attempt, verdict, outcome)
        self._message_ended(attempt.message, outcome)
        self._inventory.remove(attempt)


def _size(batch: "Sequence[Ended]") -> int:
    return sum([verdict.size for _, verdict in batch])


def _batches(ended: "list[Ended]") -> "Iterator[list[Ended]]":
    """Split a list so that no batch has too many messages or bytes."""
    if ended and len(ended) <= MAX_BATCH and _size(ended) <= BATCH_BYTES:
        yield ended
        return
    batch: list[Ended] = []
    size = 0
    for attempt, verdict in ended:
        size += verdict.size
        if batch and (size > BATCH_BYTES or len(batch) == MAX_BATCH):
            yield batch
            batch, size = [], verdict.size
        batch.append((attempt, verdict))
    if batch:
        yield batch
