"""The queue: everything a program does with it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Self

from lonnymq import schema as schemas
from lonnymq.calls import argument
from lonnymq.calls import channel as channel_calls
from lonnymq.calls import message as calls
from lonnymq.calls import peek as peek_calls
from lonnymq.calls import queue as queue_calls
from lonnymq.calls import stage as stage_calls
from lonnymq.calls.codec import JSON, Codec
from lonnymq.calls.draft import draft, drafts
from lonnymq.calls.statement import picked
from lonnymq.client.aio import bulk
from lonnymq.client.aio.acknowledger import AsyncAcknowledger
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.aio.channel import AsyncChannel
from lonnymq.client.aio.cron import AsyncCrons
from lonnymq.client.aio.dead import AsyncDeadLetters
from lonnymq.client.aio.history import AsyncHistory
from lonnymq.client.aio.message import AsyncMessage
from lonnymq.client.aio.receiver import AsyncReceiver
from lonnymq.client.room import require_room
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.aio.source import AsyncSource, AsyncTarget
from lonnymq.connections.settings import ClientSettings
from lonnymq.connections.target import described, schema_or_environment
from lonnymq.errors import invalid
from lonnymq.model import (
    Batch,
    CancelOutcome,
    ChannelStatus,
    Created,
    HistoryMode,
    LiveMessage,
    NewMessage,
    Problem,
    Published,
    QueueActivity,
    QueueSettings,
    QueueStatus,
    RoleKind,
)

MAX_CREATE = 100_000


class AsyncQueue(AsyncAcknowledger):
    """One queue: a schema in a database.

    async with AsyncQueue("postgresql://...") as queue:
        await queue.install()
        await queue.enqueue("acme", {"video": 7})
        for message in await queue.dequeue(limit=10, wait=30):
            await message.complete()

    Every call takes `connection=`: the caller's own, whose transaction it then joins.
    Without a DSN it reads LONNYMQ_DSN, else libpq's PG* variables; without a schema LONNYMQ_SCHEMA.
    """

    def __init__(
        self,
        dsn: AsyncTarget = "",
        *,
        schema: str | None = None,
        codec: Codec = JSON,
        settings: ClientSettings | None = None,
    ) -> None:
        schema = schema_or_environment(schema)
        schemas.require_schema(schema)
        settings = settings or ClientSettings()
        self.schema = schema
        self.codec = codec
        self.caller = AsyncCaller(AsyncSource(dsn, settings), schema, settings)
        self._receiver = AsyncReceiver(self.caller)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} schema={self.schema!r} {described(self.caller.source.target)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that this client opened; a call in progress closes its own when it ends."""
        try:
            await self.caller.source.close()
        finally:
            await self._receiver.close()

    # The schema.

    async def install(self, *, connection: AsyncBorrowedConnection | None = None) -> schemas.SchemaStatus:
        """Make the queue, or bring it up to date; safe when several processes do it at once."""
        return await self.caller.run(schemas.steps.install(self.schema), connection)

    async def migrate(self, *, connection: AsyncBorrowedConnection | None = None) -> schemas.SchemaStatus:
        """Bring an installed queue up to date."""
        return await self.caller.run(schemas.steps.migrate(self.schema), connection)

    async def schema_status(
        self, *, connection: AsyncBorrowedConnection | None = None
    ) -> schemas.SchemaStatus:
        """Return which version of the schema is installed."""
        return await self.caller.run(schemas.steps.check(self.schema), connection)

    async def examine(
        self, *, connection: AsyncBorrowedConnection | None = None
    ) -> schemas.examine.Examination:
        """Ask what a doctor wants to know; works for every role, also where nothing is installed.

        Its `server.settings` are those of a connection that is not ours, which sets what it needs itself.
        """
        steps = schemas.examine.examine(self.schema)
        if connection is not None:
            return await self.caller.run(steps, connection)
        async with self.caller.source.plain() as own:
            return await self.caller.run(steps, own)

    async def uninstall(self, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """Drop the queue with all its messages."""
        await self.caller.run(schemas.steps.uninstall(self.schema), connection)

    def sql(self, *, version: int | None = None) -> str:
        """Return what `install()` runs on a fresh database, or `migrate()` on a queue of that version."""
        return schemas.sql_text(self.schema, version)

    # It enters.

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
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Created:
        """Put a message into a channel: now, `at` a time, after a `delay` (or seconds), or by `priority`.

        While a message with this `key` is live in the channel, the answer is `duplicate` and its id.
        A channel at its `max_size` drops the message: the answer is `dropped`, or ChannelFull is raised.
        If the connection is lost, only a message with a key is tried again: the others might come twice.
        """
        message = NewMessage(
            channel=channel,
            payload=payload,
            at=at,
            delay=delay,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
        )
        created = await self.caller.perform(calls.create(draft(message, self.codec)), connection)
        if raise_if_dropped:
            require_room([channel], [created])
        return created

    async def enqueue_many(
        self,
        messages: Iterable[NewMessage],
        *,
        raise_if_dropped: bool = False,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[Created]:
        """Put many messages into their channels, all or none, in the order given; see `copy_in` for more.

        Only those that a full channel drops are left out. ChannelFull, if it is asked for, has all outcomes.
        """
        made = list(drafts(messages, self.codec))
        if len(made) > MAX_CREATE:
            raise invalid("messages", f"{len(made)} messages", f"at most {MAX_CREATE}; use copy_in()")
        if not made:
            return []
        created = await self.caller.perform(calls.create_many(made), connection)
        if raise_if_dropped:
            require_room([message.channel for message in made], created)
        return created

    async def copy_in(
        self,
        messages: Iterable[NewMessage],
        *,
        publication: str | None = None,
        on_progress: Callable[[int], object] | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Published:
        """Put millions of messages into their channels, all or none; `max_size` does not apply.

        A `publication` of the same name is published once, however often it is sent.
        """
        return await bulk.copy_in(self.caller, self.codec, messages, publication, on_progress, connection)

    async def stage_prune(self, *, older_than: timedelta = timedelta(days=1)) -> int:
        """Delete what bulk loads of any role staged and nobody will publish; return how many messages.

        `older_than` is at least an hour: nothing is taken from a load that is under way.
        """
        return await self.caller.perform(stage_calls.prune(older_than))

    # It is leased.

    async def dequeue(
        self,
        limit: int = 1,
        *,
        lease_s: float = 30.0,
        worker: str | None = None,
        wait: timedelta | float | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Batch[AsyncMessage]:
        """Lease up to `limit` messages, at most 500 a call, channels taking turns.

        With `wait` (or seconds) an empty answer waits that long for a message, and costs nothing meanwhile.
        """
        call = calls.dequeue(
            argument.whole("limit", limit, 1, 10_000),
            argument.lease_ms(lease_s),
            argument.optional_text("worker", worker, 0, 255),
            # On a connection of our own nothing but leases depends on this commit.
            is_durable=connection is not None,
            is_shared=False,
            kind=AsyncMessage,
            more={"queue": self, "attempt_state": None},
        )
        wait_s = 0.0 if wait is None else argument.seconds("wait", wait)
        if wait_s and connection is not None:
            raise invalid("wait", wait, "absent if connection is given: a transaction must not sleep")
        # Reading large contents over a slow link must leave most of the lease for working them.
        reply = await self._receiver.receive(call, wait_s, lease_s / 3, connection)
        return Batch(reply.leases, reply.outcome, reply.wait_ms)

    # It is cancelled.

    async def cancel(
        self, ids: Sequence[int], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[CancelOutcome]:
        """Take messages out of the queue; the worker of a leased one learns at its next heartbeat."""
        ids = [argument.identifier("ids", id_) for id_ in ids]
        return await self.caller.perform_each(
            lambda places: calls.cancel(picked(ids, places)), len(ids), connection
        )

    async def cancel_key(
        self, channel: str, key: str, *, connection: AsyncBorrowedConnection | None = None
    ) -> CancelOutcome:
        """Cancel the live message of a channel that has this key."""
        call = calls.cancel_key(argument.channel(channel), argument.text("key", key, 1, 255))
        return await self.caller.perform_one(call, connection)

    # Operators look and steer.

    async def peek(
        self,
        channel: str | None = None,
        *,
        limit: int = 10,
        is_leased: bool = False,
        preview_bytes: int | None = 1000,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[LiveMessage]:
        """Look at a channel's next messages, or at all channels' by id, and lease none.

        With `is_leased` look at those that are being worked. `preview_bytes=None` reads whole contents.
        """
        call = peek_calls.peek(
            None if channel is None else argument.channel(channel),
            argument.whole("limit", limit, 1, 10_000),
            is_leased,
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        return await self.caller.perform(call, connection)

    async def show(
        self, message_id: int, *, connection: AsyncBorrowedConnection | None = None
    ) -> LiveMessage | None:
        """Look at one message; None if it is not live: ended, a dead letter, or never there."""
        call = peek_calls.show(argument.identifier("message_id", message_id))
        return await self.caller.perform(call, connection)

    def channel(self, name: str) -> AsyncChannel:
        """Return a tenant's channel; no round trip."""
        return AsyncChannel(self, name)

    async def channels(
        self, *, after: str = "", limit: int = 100, connection: AsyncBorrowedConnection | None = None
    ) -> list[ChannelStatus]:
        """Return channels by name; for the next page pass the last one's name as `after`."""
        call = channel_calls.statuses(
            argument.text("after", after), argument.whole("limit", limit, 1, 10_000)
        )
        return await self.caller.perform(call, connection)

    async def busiest(
        self, *, limit: int = 20, connection: AsyncBorrowedConnection | None = None
    ) -> list[ChannelStatus]:
        """Return the channels with the most messages, waiting and leased; cheap among very many channels."""
        call = channel_calls.busiest(argument.whole("limit", limit, 1, 10_000))
        return await self.caller.perform(call, connection)

    def dead(self, channel: str | None = None) -> AsyncDeadLetters:
        """Return the dead letters of a channel, or of all; no round trip."""
        return AsyncDeadLetters(self.caller, channel)

    @property
    def cron(self) -> AsyncCrons:
        """Messages that are created again and again."""
        return AsyncCrons(self.caller, self.codec)

    @property
    def history(self) -> AsyncHistory:
        """The record of finished attempts; `set(history=...)` turns it on."""
        return AsyncHistory(self.caller)

    async def set(
        self,
        *,
        history: HistoryMode | str | None = None,
        max_content_bytes: int | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> QueueSettings:
        """Change what is given, and return all settings."""
        settings: dict[str, Any] = {}
        if history is not None:
            settings["history"] = argument.word("history", history, HistoryMode)
        if max_content_bytes is not None:
            settings["max_content_bytes"] = argument.whole(
                "max_content_bytes", max_content_bytes, 1, argument.MAX_CONTENT_BYTES
            )
        return await self.caller.perform(queue_calls.set(settings), connection)

    async def activity(self, *, connection: AsyncBorrowedConnection | None = None) -> QueueActivity:
        """Return counters that only grow; two readings make a rate."""
        return await self.caller.perform(queue_calls.activity(), connection)

    async def status(self, *, connection: AsyncBorrowedConnection | None = None) -> QueueStatus:
        """Return the queue at a glance."""
        return await self.caller.perform(queue_calls.status(), connection)

    async def check(
        self, *, repair: bool = False, connection: AsyncBorrowedConnection | None = None
    ) -> list[Problem]:
        """Compare all that must agree; report what does not, and mend it if asked. Empty: all is well."""
        return await self.caller.perform(queue_calls.check(repair), connection)

    async def grant(
        self, role: str, kind: RoleKind | str, *, connection: AsyncBorrowedConnection | None = None
    ) -> None:
        """Let a role use this queue as a producer, worker, operator or reader."""
        call = queue_calls.grant(argument.text("role", role, 1, 63), argument.word("kind", kind, RoleKind))
        await self.caller.perform(call, connection)

    async def revoke(self, role: str, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """Take back all that `grant()` gave to a role."""
        await self.caller.perform(queue_calls.revoke(argument.text("role", role, 1, 63)), connection)
