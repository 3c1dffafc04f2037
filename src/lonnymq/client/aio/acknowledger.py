"""How attempts end: of many messages at once, with an answer for each, or of one."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from lonnymq.calls import acknowledge as calls
from lonnymq.calls import argument
from lonnymq.calls.codec import Codec
from lonnymq.calls.statement import Call, picked
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.attempt_state import observe
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import invalid
from lonnymq.model import Lease
from lonnymq.model.acknowledge import (
    BURY,
    COMPLETE,
    DEFER,
    GIVE_BACK,
    Action,
    BuryOutcome,
    CompleteOutcome,
    DeferOutcome,
    GiveBackOutcome,
    HeartbeatOutcome,
    Outcome,
)


class AsyncAcknowledger:
    """The part of a queue that ends attempts; it answers per message, in the order given.

    `busy` answers are asked again for a moment before they are returned.
    """

    caller: AsyncCaller
    codec: Codec

    async def complete(
        self, messages: Sequence[Lease], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[CompleteOutcome]:
        """End the life of messages whose work is done."""
        return await self._acknowledge(COMPLETE, messages, connection)

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
        """Try them again later: with one `delay`, `state`, `error` for all, or `delays`, ... one each."""
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
        """Make dead letters of them, with one `error` for all, or `errors`, one each."""
        return await self._acknowledge(BURY, messages, connection, (error, errors))

    async def give_back(
        self, messages: Sequence[Lease], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[GiveBackOutcome]:
        """Return them unworked, without spending an attempt."""
        return await self._acknowledge(GIVE_BACK, messages, connection)

    async def heartbeat(
        self,
        messages: Sequence[Lease],
        *,
        lease_s: float = 30.0,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[HeartbeatOutcome]:
        """Keep them for another `lease_s` seconds from now."""
        lease_ms = argument.lease_ms(lease_s)
        leases = _require_leases(messages)

        def call_for(places: Sequence[int]) -> Call[list[HeartbeatOutcome]]:
            ids, tokens = _fences(picked(leases, places))
            # On a connection of our own nothing but leases depends on this commit.
            return calls.heartbeat(ids, tokens, lease_ms, is_durable=connection is not None)

        with observe(leases, connection) as note:
            return note(await self.caller.perform_each(call_for, len(leases), connection))

    async def _acknowledge(
        self,
        action: Action[Outcome],
        messages: Sequence[Lease],
        connection: AsyncBorrowedConnection | None,
        *given: tuple[Any, Sequence[Any] | None],
    ) -> list[Outcome]:
        """`given` has each detail of the action: one value for all messages, or one each."""
        leases = _require_leases(messages)
        details = []
        for name, (one, each) in zip(action.details, given, strict=True):
            detail = calls.DETAILS[name]
            values = argument.spread(detail.argument, one, each, len(leases))
            details.append([detail.encode(value, self.codec) for value in values])
        with observe(leases, connection) as note:
            return note(await acknowledge(self.caller, action, leases, details, connection))


class AsyncMessageActions:
    """The same for one message. With `connection=`, an acknowledgement joins the caller's transaction."""

    queue: AsyncAcknowledger
    id: int
    token: int

    async def complete(self, *, connection: AsyncBorrowedConnection | None = None) -> CompleteOutcome:
        """The work is done: the message is gone."""
        return (await self.queue.complete([self], connection=connection))[0]

    async def defer(
        self,
        *,
        delay: timedelta | float | None = None,
        state: Any = None,
        error: str | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DeferOutcome:
        """Try again after `delay`, with `state` for the next attempt; buried if this was the last one."""
        outcomes = await self.queue.defer(
            [self], delay=delay, state=state, error=error, connection=connection
        )
        return outcomes[0]

    async def bury(
        self, *, error: str | None = None, connection: AsyncBorrowedConnection | None = None
    ) -> BuryOutcome:
        """Never try again: it becomes a dead letter."""
        return (await self.queue.bury([self], error=error, connection=connection))[0]

    async def give_back(self, *, connection: AsyncBorrowedConnection | None = None) -> GiveBackOutcome:
        """Return it unworked, without spending an attempt."""
        return (await self.queue.give_back([self], connection=connection))[0]

    async def heartbeat(
        self, *, lease_s: float = 30.0, connection: AsyncBorrowedConnection | None = None
    ) -> HeartbeatOutcome:
        """Keep it for another `lease_s` seconds from now."""
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
    """End attempts, with details that are encoded; without `repeat_busy` in one call, which asks once."""

    def call_for(places: Sequence[int]) -> Call[list[Outcome]]:
        ids, tokens = _fences(picked(leases, places))
        return calls.acknowledge(action, ids, tokens, *(picked(values, places) for values in details))

    if not repeat_busy:
        return await caller.perform(call_for(range(len(leases))), connection)
    return await caller.perform_each(call_for, len(leases), connection)


def _fences(leases: Sequence[Lease]) -> tuple[list[int], list[int]]:
    return [lease.id for lease in leases], [lease.token for lease in leases]


def _require_leases(messages: Iterable[Lease]) -> list[Lease]:
    try:
        leases = list(messages)
        is_right = all(hasattr(lease, "id") and hasattr(lease, "token") for lease in leases)
    except TypeError:
        is_right = False
    if not is_right:
        raise invalid("messages", messages, "a sequence of leased messages (one has the same methods itself)")
    for lease in leases:
        argument.identifier("messages", lease.id)
        argument.identifier("messages", lease.token)
    repeated = len(leases) - len({lease.id for lease in leases})
    if repeated:
        raise invalid("messages", f"{repeated} repeated ones", "without repetition")
    return leases
