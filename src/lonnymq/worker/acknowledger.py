"""Tells the queue how attempts ended, many in one call: a message does not cost a round trip of its own."""

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg

from lonnymq.calls import argument
from lonnymq.client.aio.acknowledger import acknowledge
from lonnymq.client.aio.caller import MAX_BATCH
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, ConnectionLost, LonnyError
from lonnymq.model.acknowledge import ACTIONS, COMPLETE, DEFER, GIVE_BACK, Action
from lonnymq.worker.timeouts import call_within, timeout_for
from lonnymq.worker.verdict import GIVEN_BACK, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lonnymq.client.aio.caller import AsyncCaller
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.inventory import Inventory
    from lonnymq.worker.worker_log import WorkerLog

    Ended = tuple[Attempt, Verdict]

# A call goes out when so many have ended, or so long after the first of them; at once, if nothing else runs.
GROUP = 100
LINGER_S = 0.002
# No call carries more than this, unless one attempt alone does.
GROUP_BYTES = 1024 * 1024
# Until asking again about a lease that is locked.
BUSY_RETRY_S = 0.05
# The queue refuses these whatever its state: sent again, they would be refused again.
REFUSED_ERRORS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)


class Acknowledger:
    """Keeps each verdict until the queue has answered to it."""

    def __init__(
        self,
        caller: "AsyncCaller",
        inventory: "Inventory",
        log: "WorkerLog",
        timeout_s: float,
        large: "Acknowledger | None" = None,
    ) -> None:
        self._caller = caller
        self._inventory = inventory
        self._log = log
        self._timeout_s = timeout_s
        # Where large states go, so that nothing else waits behind them.
        self._large = large
        self._pauses = Backoff()
        self._pending: list[Ended] = []
        self._signal: asyncio.Future[None] | None = None

    def give_back(self, attempt: "Attempt") -> None:
        """Return a message unworked; no attempt is spent."""
        self.add(attempt, GIVEN_BACK)

    def add(self, attempt: "Attempt", verdict: Verdict) -> None:
        """Note how an attempt ended; the queue is told soon."""
        if attempt not in self._inventory.held:
            return  # lost, and reported when that was known
        has_failed = verdict.action is not COMPLETE
        if attempt.state.outcome is not None and not (attempt.state.is_borrowed and has_failed):
            # The handler has told the queue itself. An error may have rolled back a borrowed connection.
            self._done(attempt, verdict, attempt.state.outcome)
        elif verdict.action is None or (attempt.state.is_lost and verdict.action is not GIVE_BACK):
            self._done(attempt, verdict, "lease_lost")
        else:
            if verdict.state is not None:
                self._inventory.reserve(attempt, len(verdict.state))
            self._put(attempt, verdict)

    def _put(self, attempt: "Attempt", verdict: Verdict) -> None:
        if self._large is not None and _size(verdict) > GROUP_BYTES:
            self._large._put(attempt, verdict)
            return
        self._pending.append((attempt, verdict))
        if self._signal is not None and len(self._pending) in (1, GROUP):
            _set(self._signal)

    async def run(self) -> None:
        """Acknowledge for ever; while a call is on its way, the next group gathers."""
        while True:
            if not self._pending:
                await self._wait_for_signal(None)
            if len(self._pending) < GROUP and (self._inventory.occupied_slots or self._inventory.waiting):
                await self._wait_for_signal(LINGER_S)
            await self._flush()

    async def _flush(self) -> None:
        pending, self._pending = self._pending, []
        for action in ACTIONS:
            for group in _groups([ended for ended in pending if ended[1].action is action]):
                await self._acknowledge(action, group)

    async def _acknowledge(self, action: Action[Any], group: "Sequence[Ended]") -> None:
        seconds = timeout_for(self._timeout_s, sum(_size(verdict) for _, verdict in group))
        messages = [attempt.message for attempt, _ in group]
        details = [[getattr(verdict, name) for _, verdict in group] for name in action.details]
        # One that is busy must not hold up the others.
        call = acknowledge(self._caller, action, messages, details, repeat_busy=False)
        try:
            answers = await call_within(self._caller.source, seconds, call)
        except Exception as error:  # noqa: BLE001 - the worker outlives it
            if isinstance(error, REFUSED_ERRORS) or (
                isinstance(error, LonnyError) and not isinstance(error, ConnectionLost | Busy)
            ):
                await self._acknowledge_individually(action, group, error)
                return
            for attempt, _ in group:
                attempt.may_be_acknowledged = attempt.may_be_acknowledged or getattr(
                    error, "may_have_happened", True
                )
            self._pending.extend(group)
            self._log.log_failure("acknowledging", error)
            await asyncio.sleep(self._pauses.next_s())
        else:
            self._pauses.reset()
            self._log.log_recovery("acknowledging")
            for (attempt, verdict), answer in zip(group, answers, strict=True):
                if answer == "busy":
                    # Another transaction has locked it.
                    asyncio.get_running_loop().call_later(BUSY_RETRY_S, self._put, attempt, verdict)
                else:
                    self._done(attempt, verdict, answer)

    async def _acknowledge_individually(
        self, action: Action[Any], group: "Sequence[Ended]", error: Exception
    ) -> None:
        """One of them is refused, and must not keep the others from their end."""
        attempt, verdict = group[0]
        if len(group) > 1:
            for ended in group:
                await self._acknowledge(action, [ended])
        elif verdict.state is not None:
            # Its next attempt begins without a state, and the error says why.
            reason = argument.error_text(f"the state was refused: {error}")
            self._put(attempt, Verdict(DEFER, verdict.delay_ms, error=reason))
        else:
            self._log.log_refusal(attempt, action, error)
            self._inventory.remove(attempt)

    def _done(self, attempt: "Attempt", verdict: Verdict, outcome: str) -> None:
        self._log.log_attempt(attempt, verdict, outcome)
        self._inventory.remove(attempt)

    async def _wait_for_signal(self, for_s: float | None) -> None:
        """Wait for the first verdict of a group or, for so long, until the group is large enough."""
        loop = asyncio.get_running_loop()
        self._signal = loop.create_future()
        timer = None if for_s is None else loop.call_later(for_s, _set, self._signal)
        await self._signal
        self._signal = None
        if timer is not None:
            timer.cancel()


def _groups(ended: "list[Ended]") -> "Iterator[list[Ended]]":
    """Cut a list so that no part has too many messages or bytes."""
    group: list[Ended] = []
    size = 0
    for one in ended:
        size += _size(one[1])
        if group and (size > GROUP_BYTES or len(group) == MAX_BATCH):
            yield group
            group, size = [], _size(one[1])
        group.append(one)
    if group:
        yield group


def _size(verdict: Verdict) -> int:
    return len(verdict.state or b"") + len(verdict.error or "")


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
