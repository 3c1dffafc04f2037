"""Executes calls: on a borrowed connection once, on our own connections with retries.

The path of a call: perform -> execute -> `connections/aio/execution.py` -> the server.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import psycopg

from lonnymq import schema as schemas
from lonnymq.calls import queue as queue_calls
from lonnymq.calls.statement import Call
from lonnymq.client.aio.cancellation import finish_or_undo
from lonnymq.client.aio.schema_steps import run_steps
from lonnymq.client.instrumentation import Instrumentation
from lonnymq.connections.aio.borrowed import (
    AsyncAnyConnection,
    AsyncBorrowedConnection,
    borrow,
    borrow_driver,
)
from lonnymq.connections.aio.execution import execute
from lonnymq.connections.aio.source import AsyncSource
from lonnymq.connections.backoff import Backoff
from lonnymq.connections.settings import ClientSettings
from lonnymq.connections.target import describe_target
from lonnymq.errors import (
    Busy,
    ConnectionLost,
    LoginRefused,
    LonnyError,
    SchemaMissing,
    SchemaTooOld,
)

Result = TypeVar("Result")
Outcome = TypeVar("Outcome", bound=StrEnum)

# The most items in one call that answers per item.
MAX_BATCH = 10_000
# After a migration that excludes this client's version, calls are refused within this time.
CHECK_VERSION_S = 60.0
# The longest pause before a call is repeated.
MAX_PAUSE_S = 1.0


class AsyncCaller:
    """The only path from a queue to its database.

    `queue.caller` is also the interface for the other packages of LonnyMQ (worker, tasks, spark, testing):

    - `perform(call)` executes a value of `lonnymq.calls`, on our own connections or a borrowed one;
    - `execute(call, connection)` executes a call once, on a connection of `source`;
    - `run(steps)` runs steps of `lonnymq.schema` in one transaction;
    - `require_queue()` raises unless there is a queue that this client can use;
    - `source` provides our own connections, and replaces those that do not answer;
    - `schema`, `settings` and `instrumentation` are those of the queue.
    """

    def __init__(
        self,
        source: AsyncSource,
        schema: str,
        settings: ClientSettings,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self.source = source
        self.schema = schema
        self.settings = settings
        self.instrumentation = instrumentation
        self._check_version_at = 0.0
        self._checked_connect_count = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} schema={self.schema!r} {describe_target(self.source.target)}>"

    async def perform(self, call: Call[Result], connection: AsyncBorrowedConnection | None = None) -> Result:
        """Execute a call; on our own connections, repeat it if the connection is lost and that is safe."""
        if connection is not None:
            return await self.execute(call, borrow(connection))
        deadline = time.monotonic() + self.settings.retry_for_s
        backoff: Backoff | None = None
        may_have_happened = False
        while True:
            failed: ConnectionLost | Busy
            try:
                async with self.source.connection(max(0.0, deadline - time.monotonic())) as own:
                    result = await self.execute(call, own)
            except SchemaMissing as error:
                raise await self._explain(error) from error
            except LoginRefused:
                raise
            except Busy as error:
                # The call was rolled back, so it is always safe to repeat.
                failed = error
            except ConnectionLost as error:
                if error.may_have_happened and not call.is_repeatable:
                    raise
                may_have_happened = may_have_happened or error.may_have_happened
                failed = error
            else:
                if may_have_happened and call.is_unsure(result):
                    raise ConnectionLost(
                        f"the connection was lost during {call.statement.name}, and the retry answered"
                        f" {result}: the first attempt may have taken effect",
                        may_have_happened=True,
                    ) from failed
                return result
            backoff = backoff or Backoff(max_s=MAX_PAUSE_S)
            await asyncio.sleep(backoff.next_s())
            if time.monotonic() < deadline:
                continue
            if isinstance(failed, Busy) or failed.may_have_happened is may_have_happened:
                raise failed
            raise ConnectionLost(str(failed), may_have_happened=may_have_happened) from failed

    async def perform_each(
        self,
        call_for: Callable[[Sequence[int]], Call[list[Outcome]]],
        count: int,
        connection: AsyncBorrowedConnection | None = None,
    ) -> list[Outcome]:
        """Execute a call with an outcome per item; repeat it for a short while for items that are busy."""
        outcomes: list[Outcome] = []
        for start in range(0, count, MAX_BATCH):
            indexes = range(start, min(start + MAX_BATCH, count))
            batch = await self.perform(call_for(indexes), connection)
            outcomes.extend(batch)
        for pause_s in self._busy_pauses():
            busy = [index for index, outcome in enumerate(outcomes) if outcome == "busy"]
            if not busy:
                break
            await asyncio.sleep(pause_s)
            again = await self.perform(call_for(busy[:MAX_BATCH]), connection)
            for index, outcome in zip(busy, again, strict=False):
                outcomes[index] = outcome
        return outcomes

    async def perform_one(
        self, call: Call[Outcome], connection: AsyncBorrowedConnection | None = None
    ) -> Outcome:
        """Execute a call with one outcome; repeat it for a short while if that is "busy"."""
        return await self.perform_while(call, lambda outcome: outcome == "busy", connection)

    async def perform_while(
        self,
        call: Call[Result],
        is_busy: Callable[[Result], bool],
        connection: AsyncBorrowedConnection | None = None,
    ) -> Result:
        """Execute a call, and repeat it for a short while as long as its result is busy."""
        result = await self.perform(call, connection)
        for pause_s in self._busy_pauses():
            if not is_busy(result):
                break
            await asyncio.sleep(pause_s)
            result = await self.perform(call, connection)
        return result

    async def execute(self, call: Call[Result], connection: AsyncAnyConnection) -> Result:
        """Execute a call once, on this connection; undo it if its caller is cancelled meanwhile."""
        undo = call.undo
        if undo is None:
            return await self._execute(call, connection)
        return await finish_or_undo(self._execute(call, connection), lambda result: self.undo(undo(result)))

    async def undo(self, call: Call[Any] | None) -> None:
        """Perform a call that undoes another one, if there is one; ignore failures."""
        try:
            if call is not None:
                await self.perform(call)
        except (LonnyError, psycopg.Error):
            # Only leases are undone, and they expire by themselves.
            pass

    async def require_compatible(self, connection: AsyncAnyConnection) -> None:
        """Refuse a queue whose newer version excludes this client; accept a schema without a queue."""
        connect_count = self.source.connect_count
        try:
            mark = await execute(
                queue_calls.version_comment(self.schema), connection, self.schema, prepare=False
            )
            found = schemas.parse_version_comment(mark)
            if found is not None:
                schemas.refuse_newer(self.schema, found.version, found.breaks_below)
        except ConnectionLost as error:
            if not error.may_have_happened:
                raise
            raise ConnectionLost(
                f"the connection was lost before the call was sent ({error.__cause__})",
                may_have_happened=False,
            ) from error.__cause__
        self._check_version_at = time.monotonic() + CHECK_VERSION_S
        self._checked_connect_count = connect_count

    async def run(
        self, steps: "schemas.Steps[Result]", connection: AsyncBorrowedConnection | None = None
    ) -> Result:
        """Run schema steps in one transaction, or in a savepoint of the caller's transaction."""
        if connection is not None:
            return await run_steps(steps, await borrow_driver(connection, self.schema), self.schema)
        async with self.source.connection() as own:
            return await run_steps(steps, own, self.schema)

    async def require_queue(self) -> None:
        """Raise unless there is a queue that this client can use."""
        async with self.source.connection() as own:
            status = await run_steps(schemas.steps.status(self.schema), own, self.schema)
            if status.state is schemas.SchemaState.MISSING:
                raise SchemaMissing(
                    f"there is no queue in schema {self.schema!r} of database {own.info.dbname!r}: run"
                    " install() or `lonnymq install`, or check that this is the right database"
                )
            await self.require_compatible(own)

    async def _execute(self, call: Call[Result], connection: AsyncAnyConnection) -> Result:
        if (
            time.monotonic() >= self._check_version_at
            or self.source.connect_count != self._checked_connect_count
        ):
            await self.require_compatible(connection)
        return await execute(call, connection, self.schema)

    async def _explain(self, error: SchemaMissing) -> SchemaMissing | SchemaTooOld:
        status = await self.run(schemas.steps.status(self.schema))
        if status.state is not schemas.SchemaState.OUTDATED:
            return error
        return SchemaTooOld(
            f"the queue in schema {self.schema!r} is outdated (it has version {status.version}, this client"
            f" installs {status.latest}): run migrate() ({error.__cause__})"
        )

    def _busy_pauses(self) -> Iterator[float]:
        return Backoff(first_s=0.002, max_s=0.1).pauses(for_s=self.settings.busy_for_s)
