"""Dead letters, of one channel or of all."""

from collections.abc import Callable, Sequence
from datetime import datetime

from lonnymq.calls import argument
from lonnymq.calls import dead as calls
from lonnymq.calls.statement import Call, pick
from lonnymq.client.aio.caller import MAX_BATCH, AsyncCaller
from lonnymq.connections.aio.borrowed import AsyncBorrowedConnection
from lonnymq.errors import invalid
from lonnymq.model import DeadGroups, DeadLetter, IdPage, Page, PageCursor, PurgeOutcome, RedriveOutcome


class AsyncDeadLetters:
    """Lists, redrives and purges dead letters."""

    def __init__(self, caller: AsyncCaller, channel: str | None) -> None:
        self._caller = caller
        self._channel = channel if channel is None else argument.channel(channel)

    def __repr__(self) -> str:
        channel = "all channels" if self._channel is None else repr(self._channel)
        return f"<{type(self).__name__} of {channel} by {self._caller!r}>"

    async def list(
        self, *, limit: int = 100, after: int = 0, connection: AsyncBorrowedConnection | None = None
    ) -> Sequence[DeadLetter]:
        """Return the oldest dead letters; for the next page, pass the last one's id as `after`."""
        argument.whole("limit", limit, 1, MAX_BATCH)
        argument.identifier("after", after)
        return await self._caller.perform(calls.list(self._channel, limit, after), connection)

    async def page(
        self,
        *,
        error: str | None = None,
        before: PageCursor | None = None,
        limit: int = 100,
        preview_bytes: int | None = 1000,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Page[DeadLetter]:
        """Return a page of dead letters, those buried last first; for the next one, pass `next` as `before`.

        `error` is the last line of an error, as `groups()` returns it. `preview_bytes=None` reads whole
        contents; 0 reads neither contents, states nor headers, which a reader may not.
        """
        call = calls.page(
            self._channel,
            argument.optional_text("error", error, 0, 200),
            argument.cursor("before", before),
            argument.whole("limit", limit, 1, MAX_BATCH),
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        return await self._caller.perform(call, connection)

    async def ids(
        self,
        *,
        error: str | None = None,
        before: PageCursor | None = None,
        limit: int = MAX_BATCH,
        connection: AsyncBorrowedConnection | None = None,
    ) -> IdPage:
        """Return the ids of a page, to show how many there are and then redrive or purge exactly these.

        Pass its `at` as `before`, to except those that were redriven meanwhile and have failed again.
        """
        call = calls.ids(
            self._channel,
            argument.optional_text("error", error, 0, 200),
            argument.cursor("before", before),
            argument.whole("limit", limit, 1, MAX_BATCH),
        )
        return await self._caller.perform(call, connection)

    async def groups(
        self,
        *,
        limit: int = 100,
        letters: int = MAX_BATCH,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DeadGroups:
        """Group the dead letters that were buried last, at most `letters`, by their last line of error."""
        argument.whole("limit", limit, 1, MAX_BATCH)
        argument.whole("letters", letters, 1, MAX_BATCH)
        return await self._caller.perform(calls.groups(self._channel, limit, letters), connection)

    async def show(
        self,
        message_id: int,
        *,
        preview_bytes: int | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> DeadLetter | None:
        """Return one dead letter; None if there is none with that id.

        `preview_bytes=0` reads neither content, state nor headers, which a reader may not.
        """
        call = calls.show(
            argument.whole("message_id", message_id, 0, argument.MAX_BIGINT),
            argument.optional_whole("preview_bytes", preview_bytes, 0, argument.MAX_INTEGER),
        )
        found = await self._caller.perform(call, connection)
        return found if found is not None and self._channel in (None, found.channel) else None

    async def redrive(
        self,
        ids: Sequence[int],
        *,
        before: datetime | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Sequence[RedriveOutcome]:
        """Put dead letters back into their channels, with no attempts spent; or only those buried before."""
        _require_instant(before)
        named = argument.identifiers("ids", ids)
        return await self._caller.perform_each(
            lambda indexes: calls.redrive(pick(named, indexes), before), len(named), connection
        )

    async def redrive_all(
        self, *, limit: int | None = None, connection: AsyncBorrowedConnection | None = None
    ) -> int:
        """Put back all dead letters of the channel, except those whose key is live; return how many.

        `limit` is how many at most. On a borrowed connection, all are one transaction.
        """
        channel = self._require_channel("redrive_all")
        return await self._repeat(lambda most: calls.redrive_channel(channel, most), limit, connection)

    async def purge(
        self,
        ids: Sequence[int],
        *,
        before: datetime | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> Sequence[PurgeOutcome]:
        """Delete dead letters permanently; or only those of them that were buried before then."""
        _require_instant(before)
        named = argument.identifiers("ids", ids)
        return await self._caller.perform_each(
            lambda indexes: calls.purge(pick(named, indexes), before), len(named), connection
        )

    async def purge_all(
        self,
        *,
        before: datetime | None = None,
        limit: int | None = None,
        connection: AsyncBorrowedConnection | None = None,
    ) -> int:
        """Delete all dead letters of the channel, or those buried before an instant; return how many.

        `limit` is how many at most. On a borrowed connection, all are one transaction.
        """
        channel = self._require_channel("purge_all")
        _require_instant(before)
        return await self._repeat(lambda most: calls.purge_channel(channel, most, before), limit, connection)

    async def _repeat(
        self,
        make: Callable[[int], Call[int]],
        limit: int | None,
        connection: AsyncBorrowedConnection | None,
    ) -> int:
        """Call until nothing is left, or `limit` is reached; return the sum."""
        left = argument.optional_whole("limit", limit, 1, argument.MAX_BIGINT) or argument.MAX_BIGINT
        total = 0
        while left and (count := await self._caller.perform(make(min(left, MAX_BATCH)), connection)):
            total += count
            left -= count
        return total

    def _require_channel(self, method: str) -> str:
        if self._channel is None:
            raise invalid("channel", None, f"given for {method}(): call dead(channel).{method}()")
        return self._channel


def _require_instant(before: datetime | None) -> None:
    if before is not None:
        argument.epoch_ms("before", before)
