"""Loads millions of messages at once: COPY into the stage, then publish."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection, AsyncCopy, AsyncCursor

from lonnymq.calls import argument, stage
from lonnymq.calls import message as calls
from lonnymq.calls.codec import Codec
from lonnymq.calls.draft import Draft, drafts
from lonnymq.client.aio.caller import AsyncCaller
from lonnymq.client.staging import copy_statement, flush, split
from lonnymq.connections import failure
from lonnymq.connections.aio.borrowed import AsyncAnyConnection, AsyncBorrowedConnection, borrow_driver
from lonnymq.connections.aio.execution import transaction
from lonnymq.errors import ConnectionLost
from lonnymq.model import NewMessage, Published

PROGRESS_MESSAGES = 10_000


async def copy_in(
    caller: AsyncCaller,
    codec: Codec,
    messages: Iterable[NewMessage],
    publication: str | None,
    on_progress: Callable[[int], object] | None,
    connection: AsyncBorrowedConnection | None,
) -> Published:
    """Stage, then publish; on a borrowed connection, both join the caller's transaction."""
    name = uuid4().hex if publication is None else argument.text("publication", publication, 1, 255)
    part = uuid4()
    load = Load(drafts(messages, codec), stage.Packer(name, part), on_progress)
    if connection is None:
        async with caller.source.connection() as own:
            await caller.require_compatible(own)
            await _stage(caller, own, load)
    else:
        borrowed = await borrow_driver(connection, caller.schema)
        await caller.require_compatible(borrowed)
        await _stage(caller, borrowed, load)
    return await caller.perform(calls.publish(name, str(part), load.count), connection)


async def _stage(caller: AsyncCaller, connection: AsyncAnyConnection, load: "Load") -> None:
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
            async with cursor.copy(copy_statement(caller.schema)) as copy:
                for chunk in load.chunks():
                    await send(connection, copy, chunk)
    except psycopg.Error as error:
        ours = failure.translate(error, connection, caller.schema, commits=False)
        raise ours from (None if ours is error else error)


async def send(connection: AsyncConnection[Any], copy: AsyncCopy, chunk: bytes | memoryview) -> None:
    """Write a chunk of COPY data, and wait until it is sent before more is produced."""
    for piece in split(chunk):
        await copy.write(piece)
        await connection.wait(flush(connection.pgconn))


class Load:
    """Packs messages as COPY data for the stage, and counts them."""

    def __init__(
        self, messages: Iterable[Draft], packer: stage.Packer, on_progress: Callable[[int], object] | None
    ) -> None:
        self._messages = messages
        self._packer = packer
        self._on_progress = on_progress
        self.count = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the COPY data."""
        yield stage.HEADER
        for message in self._messages:
            is_full = self._packer.add(message)
            self.count += 1
            if is_full:
                yield self._packer.flush()
            if self.count % PROGRESS_MESSAGES == 0:
                self._report()
        yield self._packer.flush() + stage.TRAILER
        self._report()

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.count)
