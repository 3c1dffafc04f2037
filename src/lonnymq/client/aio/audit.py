"""The record of what operators did: written with each action, and read."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import AsyncConnection

from lonnymq.calls import argument
from lonnymq.calls import audit as calls
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.connections import failure
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.aio.execution import transaction
from lonnymq.model import AuditRecord, Page, PageCursor


@dataclass
class AsyncAuditedAction:
    """An action in progress: do it on `connection`, and add its result to `outcomes` and `arguments`.

    If nothing turned out to be left to do, set `is_recorded` to False.
    """

    connection: AsyncConnection[Any]
    arguments: dict[str, Any]
    outcomes: list[str] = field(default_factory=list)
    is_recorded: bool = True


class AsyncAudit:
    """Records actions in their own transactions, and lists the newest 100,000."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self._caller!r}>"

    @asynccontextmanager
    async def action(
        self, actor: str, verb: str, subject: str | None = None, arguments: Mapping[str, Any] | None = None
    ) -> AsyncIterator[AsyncAuditedAction]:
        """Run the block in a transaction that also records it; if the block raises, neither happens.

            async with queue.audit.action("alice", "message_cancel") as action:
                action.outcomes += await queue.cancel(ids, connection=action.connection)

        It is not repeated if the connection is lost. ConnectionLost says whether it may have happened.
        """
        # Wrong arguments are refused before anything is done.
        calls.record(actor, verb, subject, arguments or {}, [])
        async with self._caller.source.connection() as own:
            try:
                async with transaction(own):
                    done = AsyncAuditedAction(own, dict(arguments or {}))
                    yield done
                    if done.is_recorded:
                        call = calls.record(actor, verb, subject, done.arguments, done.outcomes)
                        await self._caller.perform(call, own)
            except psycopg.Error as error:
                # Raised by BEGIN or COMMIT: the calls translate their own.
                ours = failure.translate(error, own, self._caller.schema, commits=True)
                raise ours from (None if ours is error else error)

    async def may_record(self) -> bool:
        """Whether this role may record actions: an operator, or the owner."""
        return await self._caller.perform(calls.may_record(self._caller.schema))

    async def record(
        self,
        actor: str,
        verb: str,
        subject: str | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        outcomes: Iterable[str] = (),
        connection: AsyncBorrowedConnection,
    ) -> int:
        """Record an action in the caller's transaction, which does it; return the record's id."""
        call = calls.record(actor, verb, subject, arguments or {}, outcomes)
        return await self._caller.perform(call, connection)

    async def page(
        self,
        *,
        actor: str | None = None,
        subject: str | None = None,
        before: PageCursor | None = None,
        limit: int = 100,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Page[AuditRecord]:
        """Return a page of records, newest first; for the next one, pass its `next` as `before`."""
        call = calls.page(
            argument.optional_text("actor", actor, 1, 255),
            argument.optional_text("subject", subject, 0, 255),
            argument.cursor("before", before),
            argument.whole("limit", limit, 1, calls.MAX_LIMIT),
        )
        return await self._caller.perform(call, connection)
