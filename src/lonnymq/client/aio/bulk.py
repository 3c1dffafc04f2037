"""Millions of messages at once: COPY into the stage, then publish."""

from collections.abc import Callable, Iterable
from typing import Any, cast
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from lonnymq.calls import argument, stage
from lonnymq.calls import message as calls
from lonnymq.calls.codec import Codec
from lonnymq.calls.draft import draft
from lonnymq.client import failure
from lonnymq.client.aio.caller import AsyncCaller, required
from lonnymq.errors import ConnectionLost
from lonnymq.model import NewMessage, Published
from lonnymq.schema import files

CHUNK_BYTES = 256 * 1024
PROGRESS_ROWS = 10_000


async def copy_in(
    caller: AsyncCaller,
    codec: Codec,
    messages: Iterable[NewMessage],
    publication: str | None,
    on_progress: Callable[[int], object] | None,
    connection: AsyncConnection[Any] | None,
) -> Published:
    """Stage, then publish; on the caller's connection both belong to the caller's transaction."""
    name = uuid4().hex if publication is None else argument.text("publication", publication, 1, 255)
    part = uuid4()
    encode = stage.row_encoder(name, part)
    rows = (encode(ordinal, draft(message, codec)) for ordinal, message in enumerate(messages))
    if connection is not None:
        count = await _stage(caller, required(connection), rows, on_progress)
    else:
        async with caller.source.connection() as own:
            count = await _stage(caller, own, rows, on_progress)
    return await caller.perform(calls.publish(name, str(part), count), connection)


async def _stage(
    caller: AsyncCaller,
    connection: AsyncConnection[Any],
    rows: Iterable[bytes],
    on_progress: Callable[[int], object] | None,
) -> int:
    statement = cast("Any", files.read("copy.sql").text)
    try:
        async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute("select current_setting('search_path')")
            before = await cursor.fetchone()
            await cursor.execute(
                sql.SQL("set local search_path to {}, pg_temp").format(sql.Identifier(caller.schema))
            )
            count = 0
            buffer = bytearray(stage.HEADER)
            async with cursor.copy(statement) as copy:
                for row in rows:
                    buffer += row
                    count += 1
                    if len(buffer) >= CHUNK_BYTES:
                        await copy.write(bytes(buffer))
                        buffer.clear()
                    if on_progress is not None and count % PROGRESS_ROWS == 0:
                        on_progress(count)
                await copy.write(bytes(buffer) + stage.TRAILER)
            await cursor.execute("select set_config('search_path', %s, true)", before)
    except psycopg.Error as error:
        ours = failure.translated(error, connection, caller.schema, commits=False)
        if isinstance(ours, ConnectionLost):
            ours = ConnectionLost(
                f"the connection was lost while staging: no message was created ({error})",
                may_have_happened=False,
            )
        raise ours from (None if ours is error else error)
    if on_progress is not None:
        on_progress(count)
    return count
