"""The partitions and readers of history; making and dropping partitions blocks nobody."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection

from lonnymq.calls import argument
from lonnymq.calls import history as calls
from lonnymq.calls.statement import Statement
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.connections import failure
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy
from lonnymq.model import HistoryBlocker, HistoryPartition, HistoryReader


class AsyncHistory:
    """Prepares and prunes history. Only the owner of the queue's tables, or a superuser, may prune."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self._caller!r}>"

    async def prepare(self, *, days: int = 14) -> int:
        """Make sure of a partition for today and each of the next days; return how many were created."""
        return await self._caller.perform(calls.prepare(argument.whole("days", days, 0, 366)))

    async def partitions(self) -> list[HistoryPartition]:
        """Return all partitions, oldest first."""
        return await self._caller.perform(calls.partitions())

    async def prune(self, older_than: timedelta | datetime, *, retry_for_s: float = 60.0) -> list[str]:
        """Drop the partitions that hold only older rows; return their names.

        A partition that a reader still needs stays, and so do those after it (see `readers`).
        No worker has to wait: each attempt to get a lock is short, and is repeated.
        Raises Busy after `retry_for_s`; the next call continues where this one stopped.
        """
        if isinstance(older_than, timedelta):
            argument.seconds("older_than", older_than)
            older_than = datetime.now(UTC) - older_than
        limit_ms = argument.epoch_ms("older_than", older_than)
        retry_for_s = argument.seconds("retry_for_s", retry_for_s)
        pruned = []
        async with self._caller.source.dedicated_connection() as connection:
            await connection.execute("set lock_timeout = '100ms'")
            for partition in await self._caller.execute(calls.partitions(), connection):
                # A detach in progress must be completed, whatever its age, before the next one.
                if not partition.is_detaching:
                    if not partition.is_over or partition.until_ms > limit_ms:
                        continue
                    if not await self._is_released(connection, partition.name, retry_for_s):
                        break
                await self._drop(connection, partition.name, retry_for_s)
                pruned.append(partition.name)
        return pruned

    async def readers(self, *, count_to: int = 1_000_000) -> list[HistoryReader]:
        """Return the readers that follow history, and how far each is behind, counted up to `count_to`."""
        call = calls.readers(argument.whole("count_to", count_to, 1, 1_000_000))
        return await self._caller.perform(call)

    async def lag(self, *, limit: int = 100) -> Mapping[str, float]:
        """Return how many seconds ago the oldest attempt ended that each reader is not done with; 0: none."""
        return await self._caller.perform(calls.lag(argument.whole("limit", limit, 1, 10_000)))

    async def blocker(self) -> HistoryBlocker | None:
        """Return the open transaction that keeps readers from reading further; None if there is none."""
        return await self._caller.perform(calls.blocker())

    async def rebase(self, *, connection: AsyncBorrowedConnection | None = None) -> int:
        """After restoring a dump, make the restored rows readable; return how many there are.

        Each reader must restart with a new checkpoint. Only the owner of the queue's tables may do this.
        """
        return await self._caller.perform(calls.rebase(), connection)

    async def forget(self, reader: str, *, connection: AsyncBorrowedConnection | None = None) -> bool:
        """Delete a reader that will not come back, so that `prune` ignores it; return if it existed."""
        return await self._caller.perform(calls.forget(argument.text("reader", reader, 1, 255)), connection)

    async def _is_released(self, connection: AsyncConnection[Any], name: str, retry_for_s: float) -> bool:
        """Whether no reader needs the partition any more."""
        for pause_s in Backoff(first_s=0.02, max_s=1.0).pauses(for_s=retry_for_s):
            try:
                return await self._caller.execute(calls.release(name), connection) is None
            except Busy:
                await asyncio.sleep(pause_s)
        raise Busy(f"partition {name} is in use: prune() again later")

    async def _drop(self, connection: AsyncConnection[Any], name: str, retry_for_s: float) -> None:
        for pause_s in Backoff(first_s=0.02, max_s=1.0).pauses(for_s=retry_for_s):
            found = await self._caller.execute(calls.partitions(), connection)
            partition = next((one for one in found if one.name == name), None)
            if partition is None:
                return
            if await self._run(connection, _next_step(partition)):
                continue
            await asyncio.sleep(pause_s)
        raise Busy(f"partition {name} is in use: prune() again later")

    async def _run(self, connection: AsyncConnection[Any], statement: Statement) -> bool:
        """Execute outside a transaction, as DETACH CONCURRENTLY requires; return whether it got its lock."""
        try:
            await connection.execute(statement.text(self._caller.schema), (), prepare=False)
        except psycopg.errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            ours = failure.translate(error, connection, self._caller.schema, commits=True)
            raise ours from (None if ours is error else error)
        return True


def _next_step(partition: HistoryPartition) -> Statement:
    if partition.is_detaching:
        return calls.finalize(partition.name)
    if partition.is_attached:
        return calls.detach(partition.name)
    return calls.drop(partition.name)
