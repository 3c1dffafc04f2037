"""A bulk load in the binary format of COPY. Messages of one channel share a row, as arrays."""

from collections.abc import Sequence
from datetime import timedelta
from struct import Struct
from uuid import UUID

from lonnymq.calls import argument
from lonnymq.calls.draft import Draft
from lonnymq.calls.statement import Call, call, function
from lonnymq.errors import invalid

PRUNE = function("stage_prune", p_older_than="interval")

# The columns of sql/copy.sql, in the same order.
COLUMN_NAMES = (
    "publication",
    "part",
    "ordinal",
    "channel",
    "contents",
    "dequeue_ats",
    "delays_ms",
    "keys",
    "max_attempts",
    "headers",
)
# So much of a load is grouped by channel in memory before it is sent. Larger chunks mean fewer rows.
CHUNK_MESSAGES = 65_536
CHUNK_BYTES = 8 * 2**20

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
LENGTH = Struct(">i")
BIGINT = Struct(">iq")
INTEGER = Struct(">ii")
# Size in bytes, number of dimensions, whether there are nulls, element type, number of elements, lower bound.
ARRAY = Struct(">iiiiii")
BYTEA_OID, BIGINT_OID, INTEGER_OID, TEXT_OID, JSONB_OID = 17, 20, 23, 25, 3802
# In binary format, jsonb is the text after the version of the format.
JSONB_VERSION = "\x01"


def prune(older_than: timedelta | float) -> Call[int]:
    """Prune by age and not by time, so that the server's clock decides."""
    milliseconds = argument.delay_ms("older_than", older_than)
    if milliseconds is None:
        raise invalid("older_than", older_than, "a timedelta or a number of seconds")
    return call(PRUNE, timedelta(milliseconds=milliseconds), decode=lambda rows: int(rows[0][0]))


def prefix(publication: str, part: UUID) -> bytes:
    """Return the first fields of every row of a part."""
    return Struct(">h").pack(len(COLUMN_NAMES)) + _sized(publication.encode("utf-8")) + _sized(part.bytes)


class Packer:
    """Packs the messages of one part into rows, chunk by chunk."""

    def __init__(self, publication: str, part: UUID) -> None:
        self._prefix = prefix(publication, part)
        self._ordinal = 0
        self._by_channel: dict[str, list[Draft]] = {}
        self._messages = 0
        self._bytes = 0

    def add(self, draft: Draft) -> bool:
        """Add a message to the chunk. Return whether the chunk is full."""
        drafts = self._by_channel.get(draft.channel)
        if drafts is None:
            drafts = self._by_channel[draft.channel] = []
        drafts.append(draft)
        self._messages += 1
        self._bytes += len(draft.content) + len(draft.headers or "")
        return self._messages >= CHUNK_MESSAGES or self._bytes >= CHUNK_BYTES

    def flush(self) -> bytes:
        """Return the rows of the chunk, and begin the next one."""
        begin = self._prefix + BIGINT.pack(8, self._ordinal)
        rows = b"".join(begin + _row(channel, drafts) for channel, drafts in self._by_channel.items())
        self._by_channel.clear()
        self._messages = self._bytes = 0
        self._ordinal += 1
        return rows


def _row(channel: str, drafts: Sequence[Draft]) -> bytes:
    _, contents, dequeue_ats, delays_ms, keys, max_attempts, headers = zip(*drafts, strict=True)
    return b"".join(
        (
            _sized(channel.encode("utf-8")),
            _array(BYTEA_OID, 0, [_sized(content) for content in contents]),
            _numbers(BIGINT_OID, BIGINT, dequeue_ats),
            _numbers(BIGINT_OID, BIGINT, delays_ms),
            _texts(TEXT_OID, keys),
            _numbers(INTEGER_OID, INTEGER, max_attempts),
            _texts(JSONB_OID, headers, JSONB_VERSION),
        )
    )


def _numbers(kind: int, layout: Struct, values: tuple[int | None, ...]) -> bytes:
    if values.count(None) == len(values):
        return NULL
    size = layout.size - LENGTH.size
    return _array(kind, 1, [NULL if value is None else layout.pack(size, value) for value in values])


def _texts(kind: int, values: tuple[str | None, ...], prefix: str = "") -> bytes:
    if values.count(None) == len(values):
        return NULL
    elements = [NULL if value is None else _sized((prefix + value).encode("utf-8")) for value in values]
    return _array(kind, 1, elements)


def _array(kind: int, has_null: int, elements: list[bytes]) -> bytes:
    body = b"".join(elements)
    size = ARRAY.size - LENGTH.size + len(body)
    return ARRAY.pack(size, 1, has_null, kind, len(elements), 1) + body


def _sized(value: bytes) -> bytes:
    return LENGTH.pack(len(value)) + value
