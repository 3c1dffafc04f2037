"""The queue: all that a program can do with it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self

from lonnymq import diagnostics
from lonnymq import schema as schemas
from lonnymq.calls import argument
from lonnymq.calls import message as calls
from lonnymq.calls import queue as queue_calls
from lonnymq.calls import worker as worker_calls
from lonnymq.calls.codec import JSON, Codec
from lonnymq.calls.statement import pick
from lonnymq.client.aio import migration
from lonnymq.client.aio.acknowledger import AsyncAcknowledger
from lonnymq.client.aio.audit import AsyncAudit
from lonnymq.client.aio.caller import MAX_BATCH, AsyncCaller
from lonnymq.client.aio.channel import AsyncChannel
from lonnymq.client.aio.cron import AsyncCrons
from lonnymq.client.aio.dead import AsyncDeadLetters
from lonnymq.client.aio.enqueuer import AsyncEnqueuer
from lonnymq.client.aio.history import AsyncHistory
from lonnymq.client.aio.inspector import AsyncInspector
from lonnymq.client.aio.message import AsyncMessage
from lonnymq.client.aio.receiver import AsyncReceiver
from lonnymq.client.aio.result_waiter import AsyncResultWaiter
from lonnymq.client.aio.tenant import AsyncTenant
from lonnymq.client.enqueueing import EnqueueMiddleware, require_middleware
from lonnymq.client.instrumentation import Instrumentation
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.aio.source import AsyncSource, AsyncTarget
from lonnymq.connections.settings import ClientSettings
from lonnymq.connections.target import describe_target, schema_or_environment
from lonnymq.errors import invalid
from lonnymq.model import (
    Batch,
    CancelOutcome,
    DefaultPolicyChanges,
    DrainOutcome,
    HistoryMode,
    QueueSettings,
    RoleKind,
    RunNowOutcome,
    WorkerDrain,
)


class AsyncQueue(AsyncEnqueuer, AsyncAcknowledger, AsyncInspector):
    """One queue: a schema in a database.

        async with AsyncQueue("postgresql://...") as queue:
            await queue.install()
            await queue.enqueue("acme", {"video": 7})
            for message in await queue.dequeue(limit=10, wait=30):
                await message.complete()

    Every call takes `connection=`, a connection of the caller whose transaction the call joins.
    Without a DSN, LONNYMQ_DSN is used, then libpq's PG* variables; without a schema, LONNYMQ_SCHEMA.
    `middleware` runs around each call that enqueues; `instrumentation` also around what workers do.
    """

    def __init__(
        self,
        dsn: AsyncTarget = "",
        *,
        schema: str | None = None,
        codec: Codec = JSON,
        settings: ClientSettings | None = None,
        middleware: Sequence[EnqueueMiddleware] = (),
        instrumentation: Instrumentation | None = None,
    ) -> None:
        schema = schema_or_environment(schema)
        schemas.require_schema(schema)
        settings = settings or ClientSettings()
        self.schema = schema
        self.codec = codec
        self.middleware = require_middleware(middleware)
        outermost = () if instrumentation is None else (instrumentation.enqueue,)
        self._all_middleware = (*outermost, *self.middleware)
        self.caller = AsyncCaller(AsyncSource(dsn, settings), schema, settings, instrumentation)
        self._receiver = AsyncReceiver(self.caller)
        self._result_waiter = AsyncResultWaiter(self.caller)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} schema={self.schema!r} {describe_target(self.caller.source.target)}>"

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

    # Schema

    async def install(self, *, connection: AsyncBorrowedConnection | None = None) -> schemas.SchemaStatus:
        """Install the queue, or bring it up to date; several processes may do so at once."""
        if connection is None and (await self.schema_status()).state is schemas.SchemaState.OUTDATED:
            return await self.migrate()
        return await self.caller.run(schemas.steps.install(self.schema), connection)

    async def migrate(
        self, *, connection: AsyncBorrowedConnection | None = None, retry_for_s: float = 60.0
    ) -> schemas.SchemaStatus:
        """Bring an installed queue up to date while it is in use, in several short transactions.

        A phase gives up a lock after a moment and tries again; raises Busy after `retry_for_s`. On a
        borrowed connection, everything is one transaction, and its locks are kept until the caller ends it.
        """
        if connection is not None:
            return await self.caller.run(schemas.steps.migrate(self.schema), connection)
        return await migration.migrate(self.caller, argument.seconds("retry_for_s", retry_for_s))

    async def plan_migration(self) -> tuple[schemas.MigrationPhase, ...]:
        """Return what `migrate()` would do. Changes nothing."""
        return await migration.plan_migration(self.caller)

    async def schema_status(
        self, *, connection: AsyncBorrowedConnection | None = None
    ) -> schemas.SchemaStatus:
        """Return which version of the schema is installed."""
        return await self.caller.run(schemas.steps.status(self.schema), connection)

    async def examine(
        self, *, after_failover: bool = False, connection: AsyncBorrowedConnection | None = None
    ) -> diagnostics.Examination:
        """Collect what `lonnymq doctor` reports; works for every role, even if nothing is installed.

        `server.settings` are those of an ordinary connection; the client's own connections override some.
        """
        steps = diagnostics.examine(self.schema, after_failover=after_failover)
        if connection is not None:
            return await self.caller.run(steps, connection)
        async with self.caller.source.default_connection() as own:
            return await self.caller.run(steps, own)

    async def uninstall(self, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """Drop the queue with all its messages."""
        await self.caller.run(schemas.steps.uninstall(self.schema), connection)

    def sql(self, *, version: int | None = None) -> str:
        """Return what `install()` runs on a new database, or `migrate()` on a queue of that version."""
        return schemas.sql_text(self.schema, version)

    # Dequeueing

    async def dequeue(
        self,
        limit: int = 1,
        *,
        lease_s: float = 30.0,
        worker: str | None = None,
        wait: timedelta | float | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Batch[AsyncMessage]:
        """Lease up to `limit` messages, at most 500 per call; channels take turns.

        With `wait` (a timedelta or seconds), wait up to that long for a message if there is none.
        """
        call = calls.dequeue(
            argument.whole("limit", limit, 1, 10_000),
            argument.lease_ms(lease_s),
            argument.optional_text("worker", worker, 0, 255),
            # On a connection of our own, only leases depend on this commit.
            is_durable=connection is not None,
            is_shared=False,
            kind=AsyncMessage,
            more={"queue": self, "attempt_state": None},
        )
        wait_s = 0.0 if wait is None else argument.seconds("wait", wait)
        if wait_s and connection is not None:
            raise invalid("wait", wait, "absent if connection is given, because a transaction must not wait")
        # Reading large contents over a slow network must leave most of the lease for the work.
        reply = await self._receiver.receive(call, wait_s, lease_s / 3, connection)
        return Batch(reply.leases, reply.outcome, reply.wait_ms)

    # Cancelling

    async def cancel(
        self, ids: Sequence[int], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[CancelOutcome]:
        """Remove messages from the queue; the worker of a leased one learns of it at its next heartbeat."""
        named = argument.identifiers("ids", ids)
        return await self.caller.perform_each(
            lambda indexes: calls.cancel(pick(named, indexes)), len(named), connection
        )

    async def run_now(
        self, ids: Sequence[int], *, connection: AsyncBorrowedConnection | None = None
    ) -> list[RunNowOutcome]:
        """Make waiting messages due now that are scheduled for later; their channel's limits still apply."""
        named = argument.identifiers("ids", ids)
        return await self.caller.perform_each(
            lambda indexes: calls.run_now(pick(named, indexes)), len(named), connection
        )

    async def cancel_key(
        self, channel: str, key: str, *, connection: AsyncBorrowedConnection | None = None
    ) -> CancelOutcome:
        """Cancel the live message with this key in a channel."""
        call = calls.cancel_key(argument.channel(channel), argument.text("key", key, 1, 255))
        return await self.caller.perform_one(call, connection)

    # Its parts, and operating it

    def channel(self, name: str) -> AsyncChannel:
        """Return a tenant's channel; makes no round trip."""
        return AsyncChannel(self, name)

    def dead(self, channel: str | None = None) -> AsyncDeadLetters:
        """Return the dead letters of a channel, or of all; makes no round trip."""
        return AsyncDeadLetters(self.caller, channel)

    @property
    def tenant(self) -> AsyncTenant:
        """What a role that is confined to some channels may do."""
        return AsyncTenant(self.caller, self.codec, self._all_middleware)

    @property
    def cron(self) -> AsyncCrons:
        """Messages that are created on a schedule."""
        return AsyncCrons(self.caller, self.codec)

    @property
    def audit(self) -> AsyncAudit:
        """The record of what operators did."""
        return AsyncAudit(self.caller)

    @property
    def history(self) -> AsyncHistory:
        """The record of finished attempts; `set(history=...)` turns it on."""
        return AsyncHistory(self.caller)

    async def set(
        self,
        *,
        history: HistoryMode | str | None = None,
        max_content_bytes: int | None = None,
        quantum: int | None = None,
        default_policy: DefaultPolicyChanges | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> QueueSettings:
        """Change the given settings, and return all of them.

        `quantum` is how many messages a channel of weight 1 gets in one turn of the rotation. More
        make dequeue cheaper with many channels, fewer let the channels alternate more finely. It is
        at most an eighth of what a call asks for, and is effective within seconds.

        `default_policy` holds fields of a `ChannelPolicy`, such as `{"max_concurrency": 5}`: what applies to
        every channel that has no value of its own. The fields that are left out stay as they are; None
        removes one. A change applies to each channel from its next turn on.
        """
        settings: dict[str, Any] = {}
        if history is not None:
            settings["history"] = argument.enum_value("history", history, HistoryMode)
        if max_content_bytes is not None:
            settings["max_content_bytes"] = argument.whole(
                "max_content_bytes", max_content_bytes, 1, argument.MAX_CONTENT_BYTES
            )
        if quantum is not None:
            settings["quantum"] = argument.whole("quantum", quantum, 1, 100)
        if default_policy is not None:
            settings["default_policy"] = queue_calls.default_policy(default_policy)
        return await self.caller.perform(queue_calls.set(settings), connection)

    async def drain_workers(
        self, worker: str | None, *, connection: AsyncBorrowedConnection | None = None
    ) -> list[WorkerDrain]:
        """Ask processes to take no more messages, to finish those that they have, and to end.

        `worker` is a process, or the beginning of its name up to a colon, such as a host; None: all of them.
        Returns those that are meant; none if no process has such a name.
        """
        call = worker_calls.drain(argument.optional_text("worker", worker, 1, 255))
        return await self.caller.perform_while(
            call, lambda asked: any(one.outcome is DrainOutcome.BUSY for one in asked), connection
        )

    async def grant(
        self,
        role: str,
        kind: RoleKind | str,
        *,
        channels: Sequence[str] | None = None,
        prefix: str | None = None,
        max_channels: int | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> None:
        """Let a role use this queue as a producer, worker, operator or reader, or as a tenant.

        A tenant is confined to `channels`, and to those that begin with `prefix`, of which it can use
        `max_channels` (10).
        """
        call = queue_calls.grant(
            argument.text("role", role, 1, 63),
            argument.enum_value("kind", kind, RoleKind),
            None if channels is None else argument.channels("channels", channels),
            argument.optional_text("prefix", prefix, 1, 255),
            argument.optional_whole("max_channels", max_channels, 1, MAX_BATCH),
        )
        await self.caller.perform(call, connection)

    async def revoke(self, role: str, *, connection: AsyncBorrowedConnection | None = None) -> None:
        """Revoke everything that `grant()` granted to a role."""
        await self.caller.perform(queue_calls.revoke(argument.text("role", role, 1, 63)), connection)
