"""Binary COPY of rows built in advance, so that the server is measured, not Python."""

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence

import psycopg
from psycopg import sql

from benchmarks.contenders.contender import PAYLOAD
from lonnymq.calls import stage
from lonnymq.calls.draft import Draft
from lonnymq.client.sync.bulk import send

ROWS_PER_BLOCK = 1_000


def bare_blocks(messages: int) -> list[bytes]:
    row = _row(PAYLOAD)
    return list(_blocks(row for _ in range(messages)))


def stage_blocks(messages: int, channels: Sequence[str], publication: str, part: uuid.UUID) -> list[bytes]:
    packer = stage.Packer(publication, part)
    blocks = [stage.HEADER]
    for number in range(messages):
        channel = channels[number % len(channels)]
        if packer.add(Draft(channel, PAYLOAD, None, None, None, None)):
            blocks.append(packer.flush())
    return [*blocks, packer.flush(), stage.TRAILER]


def copy_in(
    connection: psycopg.Connection[tuple[object, ...]],
    statement: bytes | sql.Composed,
    blocks: Sequence[bytes],
) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for block in blocks:
            send(connection, copy, block)


def _row(*values: bytes) -> bytes:
    return struct.pack(">h", len(values)) + b"".join(struct.pack(">i", len(v)) + v for v in values)


def _blocks(rows: Iterable[bytes]) -> Iterator[bytes]:
    block = [stage.HEADER]
    for row in rows:
        block.append(row)
        if len(block) >= ROWS_PER_BLOCK:
            yield b"".join(block)
            block.clear()
    yield b"".join([*block, stage.TRAILER])
