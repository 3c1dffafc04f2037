"""How attempts end, many at once; each answers per message, in the order given.

`busy` answers are asked again for a moment before they are returned.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls import message as calls
from lonnymq.calls.codec import Codec, encoded
from lonnymq.calls.statement import picked
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.attempt_state import observe
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import invalid
from lonnymq.model import (
    BuryOutcome,
    CompleteOutcome,
    DeferOutcome,
    GiveBackOutcome,
    HeartbeatOutcome,
    Lease,
)


class AsyncAcknowledger:
    """The part of a queue that ends attempts."""

    caller: AsyncCaller
    codec: Codec

    async def complete(
        self, messages: Sequence[Lease], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[CompleteOutcome]:
        """End the life of messages whose work is done."""
        ids, tokens = _fences(messages)
        with observe(messages, connection) as note:
            answers = await self.caller.perform_each(
                lambda places: calls.complete(picked(ids, places), picked(tokens, places)),
                len(ids),
                connection,
            )
            return note(answers)

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
        ids, tokens = _fences(messages)
        delays_ms = [
            argument.delay_ms("delay", one) for one in argument.spread("delay", delay, delays, len(ids))
        ]
        contents = [
            None if one is None else encoded("state", one, self.codec)
            for one in argument.spread("state", state, states, len(ids))
        ]
        texts = [argument.error_text(one) for one in argument.spread("error", error, errors, len(ids))]
        with observe(messages, connection) as note:
            answers = await self.caller.perform_each(
                lambda places: calls.defer(
                    picked(ids, places),
                    picked(tokens, places),
                    picked(delays_ms, places),
                    picked(contents, places),
                    picked(texts, places),
                ),
                len(ids),
                connection,
            )
            return note(answers)

    async def bury(
        self,
        messages: Sequence[Lease],
        *,
        error: str | None = None,
        errors: Sequence[str | None] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[BuryOutcome]:
        """Make dead letters of them, with one `error` for all, or `errors`, one each."""
        ids, tokens = _fences(messages)
        texts = [argument.error_text(one) for one in argument.spread("error", error, errors, len(ids))]
        with observe(messages, connection) as note:
            answers = await self.caller.perform_each(
                lambda places: calls.bury(picked(ids, places), picked(tokens, places), picked(texts, places)),
                len(ids),
                connection,
            )
            return note(answers)

    async def give_back(
        self, messages: Sequence[Lease], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[GiveBackOutcome]:
        """Return them unworked, without spending an attempt."""
        ids, tokens = _fences(messages)
        with observe(messages, connection) as note:
            answers = await self.caller.perform_each(
                lambda places: calls.give_back(picked(ids, places), picked(tokens, places)),
                len(ids),
                connection,
            )
            return note(answers)

    async def heartbeat(
        self,
        messages: Sequence[Lease],
        *,
        lease_s: float = 30.0,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[HeartbeatOutcome]:
        """Keep them for another `lease_s` seconds from now."""
        lease_ms = argument.lease_ms(lease_s)
        ids, tokens = _fences(messages)
        with observe(messages, connection) as note:
            answers = await self.caller.perform_each(
                lambda places: calls.heartbeat(
                    picked(ids, places),
                    picked(tokens, places),
                    lease_ms,
                    # On a connection of our own nothing but leases depends on this commit.
                    is_durable=connection is not None,
                ),
                len(ids),
                connection,
            )
            return note(answers)


def _fences(messages: Sequence[Lease]) -> tuple[list[int], list[int]]:
    try:
        is_right = all(hasattr(message, "id") and hasattr(message, "token") for message in messages)
    except TypeError:
        is_right = False
    if not is_right:
        raise invalid("messages", messages, "a sequence of leased messages (one has the same methods itself)")
    ids = [argument.identifier("messages", message.id) for message in messages]
    if len(set(ids)) != len(ids):
        raise invalid("messages", f"{len(ids) - len(set(ids))} repeated ones", "without repetition")
    return ids, [argument.identifier("messages", message.token) for message in messages]
