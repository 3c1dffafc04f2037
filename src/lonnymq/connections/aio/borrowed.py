"""The connections that an AsyncQueue can borrow. sync/borrowed.py is written by hand too."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias, cast

from psycopg import AsyncConnection, AsyncCursor

from lonnymq.calls import stage
from lonnymq.calls.statement import Rows, Style
from lonnymq.connections.aio.adapter import AsyncAdapter
from lonnymq.connections.aio.sqlalchemy import AsyncSQLAlchemy
from lonnymq.connections.borrowed import (
    AsyncpgConnection,
    AsyncSQLAlchemyConnection,
    AsyncSQLAlchemySession,
    adapt,
)

AsyncBorrowedConnection: TypeAlias = (
    AsyncConnection[Any]
    | AsyncCursor[Any]
    | AsyncSQLAlchemyConnection
    | AsyncSQLAlchemySession
    | AsyncpgConnection
)
# What a call can be executed on: a connection of psycopg, or an adapter for another library's.
AsyncAnyConnection: TypeAlias = AsyncConnection[Any] | AsyncAdapter

EXPECTED = (
    "a psycopg AsyncConnection or AsyncCursor, a SQLAlchemy AsyncConnection or AsyncSession, or an asyncpg"
    " connection (a blocking connection is for Queue)"
)


def borrow(connection: Any) -> AsyncAnyConnection:
    """Return what calls can be executed on; refuse an unsupported connection."""
    if isinstance(connection, AsyncConnection):
        return connection
    if isinstance(connection, AsyncCursor):
        # Calls use a cursor of their own, so that the caller can still fetch its rows.
        return connection.connection
    return adapt(connection, ADAPTERS, EXPECTED)


async def borrow_driver(connection: Any, schema: str) -> AsyncAnyConnection:
    """Return the driver's own connection for COPY and scripts if it can be borrowed, else the adapter."""
    borrowed = borrow(connection)
    driver = (await borrowed.native(schema)) if isinstance(borrowed, AsyncAdapter) else None
    return borrowed if driver is None else borrow(driver)


class Asyncpg(AsyncAdapter):
    """A connection of asyncpg, which implements PostgreSQL's protocol itself."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def open(self) -> Style:
        return Style.NUMBERED

    def commits(self) -> bool:
        return not (self.is_lost() or self._connection.is_in_transaction())

    def is_lost(self) -> bool:
        try:
            return bool(self._connection.is_closed())
        except Exception:  # noqa: BLE001
            # It was returned to its pool, and now every method of the proxy raises.
            return True

    async def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        return [tuple(record.values()) for record in await self._connection.fetch(text, *values)]

    async def run(self, text: str, parameters: tuple[Any, ...] | None) -> Rows:
        if parameters is None and not text.startswith("select"):
            # Only execute() accepts several statements at once; it returns no rows.
            await self._connection.execute(text)
            return []
        for number in range(1, len(parameters or ()) + 1):
            text = text.replace("%s", f"${number}", 1)
        return await self.fetch(text, parameters or ())

    def savepoint(self) -> AbstractAsyncContextManager[object]:
        return cast("AbstractAsyncContextManager[object]", self._connection.transaction())

    async def copy_in(self, schema: str, chunks: Iterator[bytes]) -> None:
        await self._connection.copy_to_table(
            "stage", schema_name=schema, columns=stage.COLUMN_NAMES, source=_iterate(chunks), format="binary"
        )


async def _iterate(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


ADAPTERS: dict[str, Callable[[Any], AsyncAdapter]] = {
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": AsyncSQLAlchemy,
    "sqlalchemy.ext.asyncio.session.AsyncSession": AsyncSQLAlchemy.of_session,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": AsyncSQLAlchemy.of_session,
    "asyncpg.connection.Connection": Asyncpg,
    "asyncpg.pool.PoolConnectionProxy": Asyncpg,
}
