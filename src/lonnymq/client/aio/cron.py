"""Crons: at every tick, a message is created once, by whichever worker is first."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls import cron as calls
from lonnymq.calls.codec import Codec
from lonnymq.client.aio.caller import MAX_BATCH, AsyncCaller
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import Busy
from lonnymq.model import (
    CatchUp,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronStatus,
    CronTickOutcome,
    DueCron,
    DueCrons,
    Ticks,
)


class AsyncCrons:
    """Sets, pauses and lists crons; workers tick them."""

    def __init__(self, caller: AsyncCaller, codec: Codec) -> None:
        self._caller = caller
        self._codec = codec

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self._caller!r}>"

    async def set(
        self,
        name: str,
        expression: str,
        *,
        channel: str,
        payload: Any,
        timezone: str = "UTC",
        catch_up: CatchUp | str = CatchUp.LATEST,
        max_attempts: int | None = None,
        headers: Mapping[str, str] | None = None,
        after: datetime | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> CronSetOutcome:
        """Create or change a cron: a message at every tick, from now on or `after` an instant.

        Each message has these `headers`.
        If the expression or the timezone changes, the cron starts again from now. A pause stays.
        """
        cron = Cron(
            name=name,
            expression=expression,
            channel=channel,
            payload=payload,
            timezone=timezone,
            catch_up=CatchUp(argument.enum_value("catch_up", catch_up, CatchUp)),
            max_attempts=max_attempts,
            headers=headers,
        )
        call = calls.set(cron, self._codec, is_declared=False, after=after)
        return _require_set(name, await self._caller.perform_one(call, connection))

    async def declare(
        self, cron: Cron, *, connection: AsyncBorrowedConnection | None = None
    ) -> CronSetOutcome:
        """Set a cron that is declared by a program: it ticks only while a worker names it in `due()`."""
        call = calls.set(cron, self._codec, is_declared=True, after=None)
        return _require_set(cron.name, await self._caller.perform_one(call, connection))

    async def pause(self, name: str, *, connection: AsyncBorrowedConnection | None = None) -> CronSetOutcome:
        """Create no more messages until `resume()`; those that exist stay."""
        return _require_set(name, await self._caller.perform_one(calls.pause(name), connection))

    async def resume(self, name: str, *, connection: AsyncBorrowedConnection | None = None) -> CronSetOutcome:
        """End a pause; the ticks missed during it are not caught up."""
        return _require_set(name, await self._caller.perform_one(calls.resume(name), connection))

    async def delete(
        self, name: str, *, connection: AsyncBorrowedConnection | None = None
    ) -> CronDeleteOutcome:
        """Delete a cron; the messages that it created stay."""
        return await self._caller.perform_one(calls.delete(name), connection)

    async def list(
        self, *, limit: int = 100, after: str = "", connection: AsyncBorrowedConnection | None = None
    ) -> Sequence[CronStatus]:
        """Return crons by name; for the next page, pass the last one's name as `after`."""
        argument.whole("limit", limit, 1, MAX_BATCH)
        return await self._caller.perform(calls.list(limit, argument.text("after", after)), connection)

    async def due(
        self,
        names: Sequence[str] = (),
        *,
        limit: int = 100,
        now: datetime | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DueCrons:
        """Return the crons that are due by the database's clock, or by `now` if time is simulated.

        Declared crons are returned only if they are among `names`; those that were `set()`, always.
        """
        argument.whole("limit", limit, 1, MAX_BATCH)
        return await self._caller.perform(calls.due(names, limit, now), connection)

    async def tick(
        self, due: DueCron, ticks: Ticks, *, connection: AsyncBorrowedConnection | None = None
    ) -> CronTickOutcome:
        """Create a message for each of these ticks, unless another worker was first."""
        return await self._caller.perform(calls.tick(due, ticks), connection)


def _require_set(name: str, outcome: CronSetOutcome) -> CronSetOutcome:
    if outcome is CronSetOutcome.BUSY:
        raise Busy(f"another transaction is changing cron {name!r}: try again")
    return outcome
