"""Executes calls: on the caller's connection as it is, on our own with repetition."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import Format
from psycopg.rows import tuple_row

from lonnymq import schema as schemas
from lonnymq.calls import queue as queue_calls
from lonnymq.calls.statement import Call, Rows
from lonnymq.client import failure
from lonnymq.client.aio.lent import AsyncBorrowed, AsyncLentConnection, borrowed, native
from lonnymq.client.aio.source import AsyncSource
from lonnymq.client.backoff import pauses
from lonnymq.client.settings import ClientSettings
from lonnymq.client.target import described
from lonnymq.errors import (
    Busy,
    ConnectionLost,
    LoginRefused,
    NotPermitted,
    SchemaMissing,
    SchemaTooOld,
)

Result = TypeVar("Result")
Outcome = TypeVar("Outcome", bound=StrEnum)

# The most an acknowledgement takes at once.
MAX_BATCH = 10_000
# A migration that no longer allows this client's version is noticed after so long at the latest.
CHECK_VERSION_S = 60.0


class AsyncCaller:
    """The one place from which calls go to the database."""

    def __init__(self, source: AsyncSource, schema: str, settings: ClientSettings) -> None:
        self.source = source
        self.schema = schema
        self.settings = settings
        self._check_version_at = 0.0
        self._checked_connections = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} schema={self.schema!r} {described(self.source.target)}>"

    async def perform(
        self,
        call: Call[Result],
        connection: AsyncLentConnection | None = None,
        execute: Callable[[Call[Result], AsyncBorrowed], Awaitable[Result]] | None = None,
    ) -> Result:
        """Execute a call; on our own connections, repeat it if the connection is lost and that is safe."""
        execute = execute or self.execute
        if connection is not None:
            return await execute(call, borrowed(connection))
        may_have_happened = False
        failed: ConnectionLost | Busy | None = None
        until = time.monotonic() + self.settings.retry_for_s
        for pause_s in pauses(0.05, 1.0, self.settings.retry_for_s):
            try:
                async with self.source.connection(max(0.0, until - time.monotonic())) as own:
                    result = await execute(call, own)
            except SchemaMissing as error:
                raise await self._explained(error) from error
            except Busy as error:
                # Rolled back as a whole, so it may always be repeated.
                failed = error
                await asyncio.sleep(pause_s)
                continue
            except LoginRefused:
                raise
            except ConnectionLost as error:
                if error.may_have_happened and not call.is_repeatable:
                    raise
                may_have_happened = may_have_happened or error.may_have_happened
                failed = error
                await asyncio.sleep(pause_s)
                continue
            if may_have_happened and call.is_unsure(result):
                raise ConnectionLost(
                    f"the connection was lost during {call.statement.name}, and the repetition answers"
                    f" {result}: the first try may have taken effect",
                    may_have_happened=True,
                ) from failed
            return result
        assert failed is not None
        if isinstance(failed, Busy) or failed.may_have_happened is may_have_happened:
            raise failed
        raise ConnectionLost(str(failed), may_have_happened=may_have_happened) from failed

    async def perform_each(
        self,
        call_for: Callable[[Sequence[int]], Call[list[Outcome]]],
        count: int,
        connection: AsyncLentConnection | None = None,
    ) -> list[Outcome]:
        """Execute a call that answers per item, then ask again for those that are busy, for a short while."""
        outcomes: list[Outcome] = []
        for start in range(0, count, MAX_BATCH):
            places = range(start, min(start + MAX_BATCH, count))
            answers = await self.perform(call_for(places), connection)
            outcomes.extend(answers)
        for pause_s in pauses(0.002, 0.1, self.settings.busy_for_s):
            busy = [place for place, outcome in enumerate(outcomes) if outcome == "busy"]
            if not busy:
                break
            await asyncio.sleep(pause_s)
            again = await self.perform(call_for(busy[:MAX_BATCH]), connection)
            for place, outcome in zip(busy, again, strict=False):
                outcomes[place] = outcome
        return outcomes

    async def perform_one(
        self, call: Call[Outcome], connection: AsyncLentConnection | None = None
    ) -> Outcome:
        """Execute a call with one answer, and again while that is "busy", for a short while."""
        outcome = await self.perform(call, connection)
        for pause_s in pauses(0.002, 0.1, self.settings.busy_for_s):
            if outcome != "busy":
                break
            await asyncio.sleep(pause_s)
            outcome = await self.perform(call, connection)
        return outcome

    async def execute(self, call: Call[Result], connection: AsyncBorrowed) -> Result:
        """Execute a call once, on this connection."""
        if time.monotonic() >= self._check_version_at or self.source.connected != self._checked_connections:
            await self.require_compatible(connection)
        return await self._execute(call, connection)

    async def require_compatible(self, connection: AsyncBorrowed) -> None:
        """Refuse a queue that a newer version has made unfit for this client; where none is, say nothing."""
        connected = self.source.connected
        try:
            mark = await self._execute(queue_calls.mark(self.schema), connection, prepare=False)
            found = schemas.read_mark(mark)
            if found is not None:
                schemas.steps.refuse_newer(self.schema, found.version, found.breaks_below)
        except ConnectionLost as error:
            if not error.may_have_happened:
                raise
            raise ConnectionLost(
                f"the connection was lost before the call was sent ({error.__cause__})",
                may_have_happened=False,
            ) from error.__cause__
        self._check_version_at = time.monotonic() + CHECK_VERSION_S
        self._checked_connections = connected

    async def _execute(
        self, call: Call[Result], connection: AsyncBorrowed, prepare: bool | None = None
    ) -> Result:
        if not isinstance(connection, AsyncConnection):
            return await connection.execute(call, self.schema)
        commits = failure.is_outside_transaction(connection)
        try:
            # Not the connection's own kind of cursor: a caller's may not know binary results.
            async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
                cursor.format = Format.BINARY
                await cursor.execute(call.statement.text(self.schema), call.values, prepare=prepare)
                rows = await cursor.fetchall()
        except psycopg.Error as error:
            ours = failure.translated(error, connection, self.schema, commits=commits)
            raise ours from (None if ours is error else error)
        return call.decode(rows)

    async def run(
        self, steps: "schemas.Steps[Result]", connection: AsyncLentConnection | None = None
    ) -> Result:
        """Run the steps of an installation in one transaction, or in a savepoint of the caller's."""
        if connection is None:
            async with self.source.connection() as own:
                return await self.run(steps, own)
        lent = await native(connection, self.schema)
        if not isinstance(lent, AsyncConnection):
            async with lent.transaction(self.schema):
                return await _driven(steps, lambda step: lent.step(step.text, step.parameters, self.schema))
        async with transaction(lent), AsyncCursor(lent, row_factory=tuple_row) as cursor:
            return await _driven(steps, lambda step: _step(step, cursor))

    async def require_queue(self) -> None:
        """Raise unless there is a queue that this client can use."""
        async with self.source.connection() as own:
            status = await self.run(schemas.steps.check(self.schema), own)
            if status.state is schemas.SchemaState.MISSING:
                raise SchemaMissing(
                    f"there is no queue in schema {self.schema!r} of database {own.info.dbname!r}: run"
                    " install() or `lonnymq install`, or check that this is the database you meant"
                )
            await self.require_compatible(own)

    async def _explained(self, error: SchemaMissing) -> SchemaMissing | SchemaTooOld:
        status = await self.run(schemas.steps.check(self.schema))
        if status.state is not schemas.SchemaState.OUTDATED:
            return error
        return SchemaTooOld(
            f"the queue in schema {self.schema!r} is of another version ({status.version}, this client brings"
            f" {status.latest}): run migrate() ({error.__cause__})"
        )


@asynccontextmanager
async def transaction(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """All or nothing inside; committed at the end only if the connection commits every statement."""
    failure.require_usable(connection)
    if failure.is_before_transaction(connection):
        # Or psycopg would take this one for the outermost, and commit for the caller.
        await connection.execute("select 1")
    async with connection.transaction():
        yield


async def _driven(
    steps: "schemas.Steps[Result]", execute: Callable[["schemas.Step"], Awaitable[Rows]]
) -> Result:
    rows: Rows | None = None
    while True:
        try:
            step = next(steps) if rows is None else steps.send(rows)
        except StopIteration as end:
            result: Result = end.value
            return result
        rows = await execute(step)


async def _step(step: "schemas.Step", cursor: AsyncCursor[tuple[Any, ...]]) -> Rows:
    text = step.text.encode(cursor.connection.info.encoding)
    try:
        await cursor.execute(text, step.parameters, prepare=False)
    except psycopg.errors.InsufficientPrivilege as error:
        place = f" ({step.origin})" if step.origin else ""
        raise NotPermitted(f"{error.diag.message_primary}{place}") from error
    return await cursor.fetchall() if cursor.description else []
