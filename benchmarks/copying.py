"""Binary COPY of rows that were built beforehand, so that the server is measured and not Python."""

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence

import psycopg

from benchmarks.contenders.contender import PAYLOAD

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
ROWS_PER_BLOCK = 1_000


def bare_blocks(messages: int) -> list[bytes]:
    row = _row(PAYLOAD)
    return list(_blocks(row for _ in range(messages)))


def stage_blocks(messages: int, channels: Sequence[str], publication: str, part: uuid.UUID) -> list[bytes]:
    names = [channel.encode() for channel in channels]
    return list(
        _blocks(
            _row(
                publication.encode(),
                part.bytes,
                struct.pack(">q", number),
                names[number % len(names)],
                PAYLOAD,
            )
            for number in range(messages)
        )
    )


def copy_in(
    connection: psycopg.Connection[tuple[object, ...]], statement: bytes, blocks: Sequence[bytes]
) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for block in blocks:
            copy.write(block)


def _row(*values: bytes) -> bytes:
    return struct.pack(">h", len(values)) + b"".join(struct.pack(">i", len(v)) + v for v in values)


def _blocks(rows: Iterable[bytes]) -> Iterator[bytes]:
    block = [HEADER]
    for row in rows:
        block.append(row)
        if len(block) >= ROWS_PER_BLOCK:
            yield b"".join(block)
            block.clear()
    yield b"".join([*block, TRAILER])
