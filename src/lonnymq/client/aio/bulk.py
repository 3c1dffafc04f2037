"""Millions of messages at once: COPY into the stage, then publish."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection, AsyncCursor

from lonnymq.calls import argument, stage
from lonnymq.calls import message as calls
from lonnymq.calls.codec import Codec
from lonnymq.calls.draft import drafts
from lonnymq.client import failure
from lonnymq.client.aio.caller import AsyncCaller, transaction
from lonnymq.client.aio.lent import AsyncBorrowed, AsyncLentConnection, native
from lonnymq.client.staging import copying
from lonnymq.errors import ConnectionLost
from lonnymq.model import NewMessage, Published

CHUNK_BYTES = 256 * 1024
PROGRESS_ROWS = 10_000


async def copy_in(
    caller: AsyncCaller,
    codec: Codec,
    messages: Iterable[NewMessage],
    publication: str | None,
    on_progress: Callable[[int], object] | None,
    connection: AsyncLentConnection | None,
) -> Published:
    """Stage, then publish; on the caller's connection both belong to the caller's transaction."""
    name = uuid4().hex if publication is None else argument.text("publication", publication, 1, 255)
    part = uuid4()
    encode = stage.row_encoder(name, part)
    load = Load((encode(ordinal, made) for ordinal, made in enumerate(drafts(messages, codec))), on_progress)
    if connection is None:
        async with caller.source.connection() as own:
            await _stage(caller, own, load)
    else:
        await _stage(caller, await native(connection, caller.schema), load)
    return await caller.perform(calls.publish(name, str(part), load.count), connection)


async def _stage(caller: AsyncCaller, connection: AsyncBorrowed, load: "Load") -> None:
    try:
        if isinstance(connection, AsyncConnection):
            await _copy(caller, connection, load)
        else:
            await connection.stage(caller.schema, load.chunks())
    except ConnectionLost as error:
        raise ConnectionLost(
            f"the connection was lost while staging: no message was created ({error.__cause__})",
            may_have_happened=False,
        ) from error.__cause__


async def _copy(caller: AsyncCaller, connection: AsyncConnection[Any], load: "Load") -> None:
    try:
        async with transaction(connection), AsyncCursor(connection) as cursor:
            async with cursor.copy(copying(caller.schema)) as copy:
                for chunk in load.chunks():
                    await copy.write(chunk)
    except psycopg.Error as error:
        ours = failure.translated(error, connection, caller.schema, commits=False)
        raise ours from (None if ours is error else error)


class Load:
    """Rows on their way into the stage, counted."""

    def __init__(self, rows: Iterable[bytes], on_progress: Callable[[int], object] | None) -> None:
        self._rows = rows
        self._on_progress = on_progress
        self.count = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield what COPY sends, in pieces worth sending."""
        buffer = bytearray(stage.HEADER)
        for row in self._rows:
            buffer += row
            self.count += 1
            if len(buffer) >= CHUNK_BYTES:
                yield bytes(buffer)
                buffer.clear()
            if self.count % PROGRESS_ROWS == 0:
                self._report()
        yield bytes(buffer) + stage.TRAILER
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.count)
