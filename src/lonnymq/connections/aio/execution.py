"""Executes one call on one connection, of psycopg or of an adapter."""

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
    """Send a call, and read and decode its reply; translate the driver's errors into ours."""
    if not isinstance(connection, AsyncConnection):
        return await connection.execute(call, schema)
    commits = failure.is_outside_transaction(connection)
    try:
        # Not the connection's own cursor class: a caller's may not support binary results.
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
    """Run the block in a transaction, which is committed, or in a savepoint of the caller's."""
    failure.require_usable(connection)
    if failure.is_before_transaction(connection):
        # Otherwise psycopg would treat this transaction as the outermost one, and commit it for the caller.
        await connection.execute("select 1")
    async with connection.transaction():
        yield
