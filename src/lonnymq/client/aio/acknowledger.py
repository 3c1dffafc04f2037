"""Ends attempts: at many messages at once, with an answer for each, or at one."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from lonnymq.calls import acknowledge as calls
from lonnymq.calls import argument
from lonnymq.calls.codec import Codec
from lonnymq.calls.result import encode_result, is_wanted
from lonnymq.calls.statement import Call, pick
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.attempt_state import AttemptState, NextStep, mark_sent, observe
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import invalid
from lonnymq.model import Lease
from lonnymq.model.acknowledge import (
    ADVANCE,
    BURY,
    COMPLETE,
    DEFER,
    GIVE_BACK,
    Action,
    AdvanceOutcome,
    BuryOutcome,
    CompleteOutcome,
    DeferOutcome,
    GiveBackOutcome,
    HeartbeatOutcome,
    Outcome,
)


class AsyncAcknowledger:
    """The part of a queue that ends attempts; it returns an outcome per message, in the order given.

    While the outcome is `busy`, the call is repeated for a short while before that is returned.
    """

    caller: AsyncCaller
    codec: Codec

    async def complete(
        self,
        messages: Sequence[Lease],
        *,
        result: Any = None,
        results: Sequence[Any] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[CompleteOutcome]:
        """Remove messages whose work is done.

        `result` is for all, `results` has one for each; kept if the producer asked for it (`keep_result`).
        A message of a task with a next step goes on with that, and takes the result along.
        """
        messages = _require_leases(messages)
        values = argument.spread("result", result, results, len(messages))
        if any(map(_next_step_after, messages)):
            return await self._complete_steps(messages, values, connection)
        kept = [
            encode_result(value, self.codec) if is_wanted(message) else None
            for message, value in zip(messages, values, strict=True)
        ]
        return await self._acknowledge(COMPLETE, messages, connection, (None, kept))

    async def advance(
        self,
        messages: Sequence[Lease],
        *,
        payload: Any = None,
        delay: timedelta | float | None = None,
        payloads: Sequence[Any] | None = None,
        delays: Sequence[timedelta | float | None] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[AdvanceOutcome]:
        """End attempts whose work has a next step: the messages wait again, with another payload.

        They keep their id, channel, key and headers, and are otherwise as if they had just been created. None
        leaves the payload as it is.
        """
        return await self._acknowledge(
            ADVANCE, messages, connection, (payload, payloads), (delay, delays), (None, None)
        )

    async def defer(
        self,
        messages: Sequence[Lease],
        *,
        delay: timedelta | float | None = None,
        state: Any = None,
        error: str | None = None,
        delays: Sequence[timedelta | float | None] | None = None,
        states: Sequence[Any] | None = None,
        errors: Sequence[str | None] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[DeferOutcome]:
        """Retry messages later; `delay`, `state` and `error` are for all, `delays`, ... have one for each."""
        return await self._acknowledge(
            DEFER, messages, connection, (delay, delays), (state, states), (error, errors)
        )

    async def bury(
        self,
        messages: Sequence[Lease],
        *,
        error: str | None = None,
        errors: Sequence[str | None] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[BuryOutcome]:
        """Make the messages dead letters; `error` is for all, `errors` has one for each."""
        return await self._acknowledge(BURY, messages, connection, (error, errors))

    async def give_back(
        self, messages: Sequence[Lease], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[GiveBackOutcome]:
        """Return the messages to the queue unprocessed, without spending an attempt."""
        return await self._acknowledge(GIVE_BACK, messages, connection)

    async def heartbeat(
        self,
        messages: Sequence[Lease],
        *,
        lease_s: float = 30.0,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[HeartbeatOutcome]:
        """Extend the leases to `lease_s` seconds from now, and report the progress of these messages."""
        lease_ms = argument.lease_ms(lease_s)
        leases = _require_leases(messages)
        states = [getattr(message, "attempt_state", None) or AttemptState() for message in leases]
        progress = [state.unsent_progress for state in states]

        def call_for(indexes: Sequence[int]) -> Call[list[HeartbeatOutcome]]:
            ids, tokens = _fences(pick(leases, indexes))
            # On a connection of our own, only leases depend on this commit.
            is_durable, reported = connection is not None, pick(progress, indexes)
            return calls.heartbeat(ids, tokens, lease_ms, is_durable=is_durable, progress=reported)

        with observe(leases, connection) as record:
            outcomes = record(await self.caller.perform_each(call_for, len(leases), connection))
        mark_sent(states, progress, outcomes)
        return outcomes

    async def _acknowledge(
        self,
        action: Action[Outcome],
        messages: Sequence[Lease],
        connection: AsyncBorrowedConnection | None,
        *given: tuple[Any, Sequence[Any] | None],
    ) -> list[Outcome]:
        """`given` has each detail of the action: one value for all messages, or one for each."""
        leases = _require_leases(messages)
        details = []
        for name, (one, each) in zip(action.details, given, strict=True):
            detail = calls.DETAILS[name]
            values = argument.spread(detail.argument, one, each, len(leases))
            details.append([detail.encode(value, self.codec) for value in values])
        with observe(leases, connection) as record:
            return record(await acknowledge(self.caller, action, leases, details, connection))

    async def _complete_steps(
        self, leases: Sequence[Lease], results: Sequence[Any], connection: AsyncBorrowedConnection | None
    ) -> list[CompleteOutcome]:
        """Complete messages of which at least one has a next step."""
        outcomes = []
        for lease, result in zip(leases, results, strict=True):
            if (next_step_after := _next_step_after(lease)) is None:
                outcomes += await self.complete([lease], result=result, connection=connection)
                continue
            step = next_step_after(result)
            details: list[list[Any]] = [[step.content], [step.delay_ms], [step.headers]]
            with observe([lease], connection) as record:
                (outcome,) = record(await acknowledge(self.caller, ADVANCE, [lease], details, connection))
            is_done = outcome is AdvanceOutcome.ADVANCED
            outcomes.append(CompleteOutcome.COMPLETED if is_done else CompleteOutcome(outcome))
        return outcomes


class AsyncMessageActions:
    """The same calls for one message. With `connection=`, they join the caller's transaction."""

    queue: AsyncAcknowledger
    id: int
    token: int

    async def complete(
        self, *, result: Any = None, connection: AsyncBorrowedConnection | None = None
    ) -> CompleteOutcome:
        """Remove the message: its work is done. The result is kept if the producer asked for it."""
        return (await self.queue.complete([self], result=result, connection=connection))[0]

    async def advance(
        self,
        *,
        payload: Any = None,
        delay: timedelta | float | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> AdvanceOutcome:
        """End the attempt: the work has a next step, for which the message waits with another payload."""
        outcomes = await self.queue.advance([self], payload=payload, delay=delay, connection=connection)
        return outcomes[0]

    async def defer(
        self,
        *,
        delay: timedelta | float | None = None,
        state: Any = None,
        error: str | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DeferOutcome:
        """Retry after `delay`, with `state` for the next attempt; bury the message if there is none."""
        outcomes = await self.queue.defer(
            [self], delay=delay, state=state, error=error, connection=connection
        )
        return outcomes[0]

    async def bury(
        self, *, error: str | None = None, connection: AsyncBorrowedConnection | None = None
    ) -> BuryOutcome:
        """Make the message a dead letter: it is not retried."""
        return (await self.queue.bury([self], error=error, connection=connection))[0]

    async def give_back(self, *, connection: AsyncBorrowedConnection | None = None) -> GiveBackOutcome:
        """Return the message to the queue unprocessed, without spending an attempt."""
        return (await self.queue.give_back([self], connection=connection))[0]

    async def heartbeat(
        self, *, lease_s: float = 30.0, connection: AsyncBorrowedConnection | None = None
    ) -> HeartbeatOutcome:
        """Extend the lease to `lease_s` seconds from now."""
        return (await self.queue.heartbeat([self], lease_s=lease_s, connection=connection))[0]


async def acknowledge(
    caller: AsyncCaller,
    action: Action[Outcome],
    leases: Sequence[Lease],
    details: Sequence[Sequence[Any]] = (),
    connection: AsyncBorrowedConnection | None = None,
    *,
    repeat_busy: bool = True,
) -> list[Outcome]:
    """End attempts; `details` are encoded. Without `repeat_busy`, make a single call."""

    def call_for(indexes: Sequence[int]) -> Call[list[Outcome]]:
        ids, tokens = _fences(pick(leases, indexes))
        return calls.acknowledge(action, ids, tokens, *(pick(values, indexes) for values in details))

    started_ns = time.time_ns()
    error: BaseException | None = None
    try:
        if not repeat_busy:
            return await caller.perform(call_for(range(len(leases))), connection)
        return await caller.perform_each(call_for, len(leases), connection)
    except BaseException as raised:
        error = raised
        raise
    finally:
        if caller.instrumentation is not None and leases:
            caller.instrumentation.settled(action.name, leases, started_ns, error)


def _next_step_after(lease: Lease) -> Callable[[Any], NextStep] | None:
    state: AttemptState | None = getattr(lease, "attempt_state", None)
    return None if state is None else state.next_step_after


def _fences(leases: Sequence[Lease]) -> tuple[list[int], list[int]]:
    return [lease.id for lease in leases], [lease.token for lease in leases]


def _require_leases(messages: Iterable[Lease]) -> list[Lease]:
    expected = "a sequence of leased messages (for one message, call its own method)"
    leases = argument.items("messages", messages, expected)
    if not all(hasattr(lease, "id") and hasattr(lease, "token") for lease in leases):
        raise invalid("messages", messages, expected)
    for lease in leases:
        argument.identifier("messages", lease.id)
        argument.identifier("messages", lease.token)
    repeated = len(leases) - len({lease.id for lease in leases})
    if repeated:
        raise invalid("messages", f"{repeated} repeated messages", "distinct")
    return leases
