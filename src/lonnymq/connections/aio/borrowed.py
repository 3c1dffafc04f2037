"""What callers may lend to an AsyncQueue. The blocking twin is by hand too: other libraries lend to it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias, cast

from psycopg import AsyncConnection, AsyncCursor

from lonnymq.calls import stage
from lonnymq.calls.statement import Rows, Style
from lonnymq.client.aio.alchemy import AsyncAlchemy
from lonnymq.client.aio.foreign import AsyncForeign
from lonnymq.client.lending import (
    AsyncpgConnection,
    AsyncSQLAlchemyConnection,
    AsyncSQLAlchemySession,
    Origin,
    origin,
    refusal,
)

AsyncLentConnection: TypeAlias = (
    AsyncConnection[Any]
    | AsyncCursor[Any]
    | AsyncSQLAlchemyConnection
    | AsyncSQLAlchemySession
    | AsyncpgConnection
)
AsyncBorrowed: TypeAlias = AsyncConnection[Any] | AsyncForeign

EXPECTED = (
    "a psycopg AsyncConnection or AsyncCursor, a SQLAlchemy AsyncConnection or AsyncSession, or an asyncpg"
    " connection (a blocking one is for Queue)"
)


def borrowed(connection: Any) -> AsyncBorrowed:
    """Return what calls can be executed on; refuse what is no connection of this client's kinds."""
    if isinstance(connection, AsyncConnection):
        return connection
    if isinstance(connection, AsyncCursor):
        # A cursor of our own on the same connection: what the caller has yet to fetch stays.
        return connection.connection
    match origin(connection):
        case Origin.ASYNC_ALCHEMY:
            return AsyncAlchemy(connection, is_session=False)
        case Origin.ASYNC_ALCHEMY_SESSION:
            return AsyncAlchemy(connection, is_session=True)
        case Origin.ASYNCPG:
            return Asyncpg(connection)
        case _:
            raise refusal(connection, EXPECTED)


async def native(connection: Any, schema: str) -> AsyncBorrowed:
    """Return the connection of the driver below, if it has one that can be borrowed."""
    lent = borrowed(connection)
    driver = (await lent.native(schema)) if isinstance(lent, AsyncForeign) else None
    return lent if driver is None else borrowed(driver)


class Asyncpg(AsyncForeign):
    """A connection of asyncpg, which speaks PostgreSQL's protocol in its own way."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def opened(self) -> Style:
        return Style.NUMBERED

    def commits(self) -> bool:
        return not (self.is_lost() or self._connection.is_in_transaction())

    def is_lost(self) -> bool:
        try:
            return bool(self._connection.is_closed())
        except Exception:  # noqa: BLE001
            # A pool lent it and has it back: it has no method left that does not raise.
            return True

    async def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        return [tuple(record.values()) for record in await self._connection.fetch(text, *values)]

    async def run(self, text: str, parameters: tuple[Any, ...] | None) -> Rows:
        if parameters is None and not text.startswith("select"):
            # Only this takes several statements at once; it returns no rows.
            await self._connection.execute(text)
            return []
        for number in range(1, len(parameters or ()) + 1):
            text = text.replace("%s", f"${number}", 1)
        return await self.fetch(text, parameters or ())

    def savepoint(self) -> AbstractAsyncContextManager[object]:
        return cast("AbstractAsyncContextManager[object]", self._connection.transaction())

    async def copy_in(self, schema: str, chunks: Iterator[bytes]) -> None:
        await self._connection.copy_to_table(
            "stage", schema_name=schema, columns=stage.COLUMN_NAMES, source=_slowly(chunks), format="binary"
        )


async def _slowly(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
