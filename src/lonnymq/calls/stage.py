"""Rows of a bulk load in COPY's binary format, made by hand: what is the same for all rows is made once."""

from collections.abc import Callable
from datetime import timedelta
from struct import Struct
from uuid import UUID

from lonnymq.calls.draft import Draft
from lonnymq.calls.statement import Call, call, function

PRUNE = function("stage_prune", p_older_than="interval")

# Those of sql/copy.sql, in its order.
COLUMN_NAMES = (
    "publication",
    "part",
    "ordinal",
    "channel",
    "content",
    "dequeue_at",
    "delay_ms",
    "key",
    "max_attempts",
)
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
COLUMNS = Struct(">h").pack(9)
LENGTH = Struct(">i")
BIGINT = Struct(">iq")
INTEGER = Struct(">ii")


def prune(older_than: timedelta) -> Call[int]:
    """An age, so that it is the server's clock that counts."""
    return call(PRUNE, older_than, decode=lambda rows: int(rows[0][0]))


def row_encoder(publication: str, part: UUID) -> Callable[[int, Draft], bytes]:
    """Return the function that encodes a draft as one row of sql/copy.sql."""
    prefix = COLUMNS + _bytes(publication.encode("utf-8")) + _bytes(part.bytes)

    def encode(ordinal: int, draft: Draft) -> bytes:
        return b"".join(
            (
                prefix,
                BIGINT.pack(8, ordinal),
                _bytes(draft.channel.encode("utf-8")),
                _bytes(draft.content),
                NULL if draft.dequeue_at is None else BIGINT.pack(8, draft.dequeue_at),
                NULL if draft.delay_ms is None else BIGINT.pack(8, draft.delay_ms),
                NULL if draft.key is None else _bytes(draft.key.encode("utf-8")),
                NULL if draft.max_attempts is None else INTEGER.pack(4, draft.max_attempts),
            )
        )

    return encode


def _bytes(value: bytes) -> bytes:
    return LENGTH.pack(len(value)) + value
