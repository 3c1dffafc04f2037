"""One call on one connection, psycopg's own or an adapter's: here statements go over the wire."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import Format
from psycopg.rows import tuple_row

from lonnymq.calls.statement import Call
from lonnymq.connections import failure
from lonnymq.connections.aio.borrowed import AsyncAnyConnection

Result = TypeVar("Result")


async def execute(
    call: Call[Result], connection: AsyncAnyConnection, schema: str, prepare: bool | None = None
) -> Result:
    """Send a call, read its reply and decode it; errors of the driver become ours."""
    if not isinstance(connection, AsyncConnection):
        return await connection.execute(call, schema)
    commits = failure.is_outside_transaction(connection)
    try:
        # Not the connection's own kind of cursor: a caller's may not know binary results.
        async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
            cursor.format = Format.BINARY
            await cursor.execute(call.statement.text(schema), call.values, prepare=prepare)
            rows = await cursor.fetchall()
    except psycopg.Error as error:
        ours = failure.translate(error, connection, schema, commits=commits)
        raise ours from (None if ours is error else error)
    return call.decode(rows)


@asynccontextmanager
async def transaction(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """All or nothing inside; committed at the end only if the connection commits every statement."""
    failure.require_usable(connection)
    if failure.is_before_transaction(connection):
        # Otherwise psycopg would take this transaction for the outermost one, and commit for the caller.
        await connection.execute("select 1")
    async with connection.transaction():
        yield
