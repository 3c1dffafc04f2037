"""The queue as a tenant uses it: a role that is confined to some channels."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lonnymq.calls import argument
from lonnymq.calls import tenant as calls
from lonnymq.calls.codec import Codec
from lonnymq.calls.draft import NEW_MESSAGES, draft, drafts
from lonnymq.calls.statement import pick
from lonnymq.client.aio.caller import MAX_BATCH, AsyncCaller
from lonnymq.client.aio.enqueuer import MAX_CREATE
from lonnymq.client.backpressure import raise_for_dropped
from lonnymq.client.enqueueing import Enqueueing, EnqueueMiddleware
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.model import (
    CancelOutcome,
    NewMessage,
    RedriveOutcome,
    TenantAttempt,
    TenantChannel,
    TenantCreated,
    TenantDeadLetter,
    TenantMessage,
)


class AsyncTenant:
    """What a role that was granted `tenant` may do. Messages have a `uuid` instead of an id.

    On a `connection` that has executed SET ROLE, that role is the tenant; otherwise the one that logged in.
    """

    def __init__(self, caller: AsyncCaller, codec: Codec, middleware: Sequence[EnqueueMiddleware]) -> None:
        self._caller = caller
        self._codec = codec
        self._middleware = middleware

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self._caller!r}>"

    async def enqueue(
        self,
        channel: str,
        payload: Any,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        key: str | None = None,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> TenantCreated:
        """Put a message into a channel of this tenant; see `AsyncQueue.enqueue`."""
        message = NewMessage(
            channel=channel,
            payload=payload,
            at=at,
            delay=delay,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
            headers=headers,
        )
        with Enqueueing(self._middleware, [message]) as enqueueing:
            (message,) = enqueueing.same_number(1)
            created = await self._caller.perform(calls.create(draft(message, self._codec)), connection)
            enqueueing.result = [created]
        if raise_if_dropped:
            raise_for_dropped([message.channel], [created])
        return created

    async def enqueue_many(
        self,
        messages: Iterable[NewMessage],
        *,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[TenantCreated]:
        """Put many messages into channels of this tenant, all or none; see `AsyncQueue.enqueue_many`."""
        given = argument.items("messages", messages, NEW_MESSAGES, MAX_CREATE)
        if not given:
            return []
        with Enqueueing(self._middleware, given) as enqueueing:
            made = list(drafts(enqueueing.same_number(len(given)), self._codec))
            created = await self._caller.perform(calls.create_many(made), connection)
            enqueueing.result = created
        if raise_if_dropped:
            raise_for_dropped([message.channel for message in made], created)
        return created

    async def cancel(
        self, uuids: Sequence[UUID], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[CancelOutcome]:
        """Remove messages from the queue."""
        named = argument.uuids("uuids", uuids)
        return await self._caller.perform_each(
            lambda indexes: calls.cancel(pick(named, indexes)), len(named), connection
        )

    async def cancel_key(
        self, channel: str, key: str, *, connection: AsyncBorrowedConnection | None = None
    ) -> CancelOutcome:
        """Cancel the live message with this key in a channel."""
        call = calls.cancel_key(argument.channel(channel), argument.text("key", key, 1, 255))
        return await self._caller.perform_one(call, connection)

    async def show(
        self, uuid: UUID, *, connection: AsyncBorrowedConnection | None = None
    ) -> TenantMessage | None:
        """Return a message; None if it is not live, or not this tenant's."""
        return await self._caller.perform(calls.show(argument.uuid("uuid", uuid)), connection)

    async def peek(
        self,
        channel: str,
        *,
        limit: int = 10,
        preview_bytes: int | None = 1000,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[TenantMessage]:
        """Return a channel's next messages; `preview_bytes=None` reads whole contents."""
        call = calls.peek(
            argument.channel(channel),
            argument.whole("limit", limit, 1, MAX_BATCH),
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        return await self._caller.perform(call, connection)

    async def channels(self, *, connection: AsyncBorrowedConnection | None = None) -> list[TenantChannel]:
        """Return the state of this tenant's channels, by name."""
        return await self._caller.perform(calls.channels(), connection)

    async def dead(
        self,
        channel: str | None = None,
        *,
        limit: int = 100,
        after: UUID | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[TenantDeadLetter]:
        """Return the oldest dead letters of a channel, or of all; for the next page, pass `after`."""
        call = calls.dead_letters(
            None if channel is None else argument.channel(channel),
            argument.whole("limit", limit, 1, MAX_BATCH),
            None if after is None else argument.uuid("after", after),
        )
        return await self._caller.perform(call, connection)

    async def redrive(
        self, uuids: Sequence[UUID], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[RedriveOutcome]:
        """Put dead letters back into their channels, as far as their `max_size` allows."""
        named = argument.uuids("uuids", uuids)
        return await self._caller.perform_each(
            lambda indexes: calls.redrive(pick(named, indexes)), len(named), connection
        )

    async def redrive_all(self, channel: str) -> int:
        """Put back the dead letters of a channel, as far as its `max_size` allows; return how many."""
        call, total = calls.redrive_channel(argument.channel(channel), MAX_BATCH), 0
        while count := await self._caller.perform(call):
            total += count
        return total

    async def history(
        self,
        channel: str,
        *,
        limit: int = 100,
        before: datetime | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[TenantAttempt]:
        """Return the latest finished attempts in a channel, or the latest that ended before an instant."""
        call = calls.history(
            argument.channel(channel),
            argument.whole("limit", limit, 1, MAX_BATCH),
            None if before is None else argument.epoch_ms("before", before),
        )
        return await self._caller.perform(call, connection)
