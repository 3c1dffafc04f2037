"""Encodes Arrow batches in COPY's binary format for sql/copy.sql, whole columns at a time."""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from lonnymq.calls import stage
from lonnymq.calls.argument import MAX_CONTENT_BYTES
from lonnymq.calls.headers import encode_headers
from lonnymq.errors import InvalidArgument
from lonnymq.spark.dequeue_time import encode_dequeue_at

# Arrow's offsets have 32 bits: larger batches are split.
MAX_BATCH_BYTES = 256 * 2**20
BIGINT = numpy.dtype([("length", ">i4"), ("value", ">i8")])
INTEGER = numpy.dtype([("length", ">i4"), ("value", ">i4")])
# The layout of stage.ARRAY.
ARRAY = numpy.dtype([(name, ">i4") for name in ("size", "dimensions", "has_null", "kind", "length", "first")])


class Encoder:
    """Encodes the batches of one part, a stretch of messages at a time, and counts them."""

    def __init__(self, publication: str, part: UUID, *, allows_any_time: bool = False) -> None:
        self._prefix = stage.prefix(publication, part)
        self._allows_any_time = allows_any_time
        self._ordinal = 0
        self._batches: list[pa.RecordBatch] = []
        self._messages = 0
        self._bytes = 0
        self.count = 0

    def encode(self, batch: pa.RecordBatch) -> Iterator[memoryview]:
        """Collect a batch; yield the bytes for COPY once enough messages are collected."""
        if batch.nbytes > MAX_BATCH_BYTES and batch.num_rows > 1:
            middle = batch.num_rows // 2
            yield from self.encode(batch.slice(0, middle))
            yield from self.encode(batch.slice(middle))
        elif batch.num_rows:
            self._batches.append(batch)
            self._messages += batch.num_rows
            self._bytes += batch.nbytes
            if self._messages >= stage.CHUNK_MESSAGES or self._bytes >= stage.CHUNK_BYTES:
                yield from self.flush()

    def flush(self) -> Iterator[memoryview]:
        """Yield the bytes for COPY of the messages collected so far."""
        if self._batches:
            table = pa.Table.from_batches(self._batches).combine_chunks()
            yield _join(self._row_pieces(table))
            self.count += table.num_rows
            self._batches.clear()
            self._messages = self._bytes = 0
            self._ordinal += 1

    def _row_pieces(self, table: pa.Table) -> list[Any]:
        """Return the pieces that form each row, one array per piece."""
        columns = {name.lower(): table.column(name).chunk(0) for name in table.schema.names}
        for name in ("channel", "content"):
            if columns[name].null_count:
                raise InvalidArgument(
                    f"column {name} must not be null, but is null in {columns[name].null_count} rows"
                )
        channels = columns.pop("channel").dictionary_encode()
        groups = ChannelGroups(channels.indices.to_numpy(), len(channels.dictionary))
        at = encode_dequeue_at(
            columns.get("dequeue_at"), columns.get("priority"), allows_any_time=self._allows_any_time
        )
        attempts = _encode_max_attempts(columns.get("max_attempts"))
        return [
            self._prefix + stage.BIGINT.pack(8, self._ordinal),
            *_lengths_and_bytes(channels.dictionary),
            *groups.arrays(_encode_content(columns["content"]), stage.BYTEA_OID, _prefix_with_length),
            *groups.arrays(at, stage.BIGINT_OID, partial(_encode_numbers, layout=BIGINT)),
            *groups.arrays(
                columns.get("delay_ms"), stage.BIGINT_OID, partial(_encode_numbers, layout=BIGINT)
            ),
            *groups.arrays(columns.get("key"), stage.TEXT_OID, _prefix_with_length),
            *groups.arrays(attempts, stage.INTEGER_OID, partial(_encode_numbers, layout=INTEGER)),
            *groups.arrays(_encode_headers(columns.get("headers")), stage.JSONB_OID, _prefix_with_length),
        ]


class ChannelGroups:
    """Groups messages by channel, channels by first appearance, and keeps each channel's order."""

    def __init__(self, channel_indices: numpy.ndarray[Any, Any], channels: int) -> None:
        self._order = pa.array(numpy.argsort(channel_indices, kind="stable"))
        self._lengths = numpy.bincount(channel_indices, minlength=channels)
        self._bounds = numpy.concatenate(([0], numpy.cumsum(self._lengths)))

    def arrays(self, column: Any, kind: int, encode: Callable[[Any], Any]) -> list[Any]:
        """Return a column's values as one PostgreSQL array per channel: the headers, and the elements."""
        if column is None or column.null_count == len(column):
            return [stage.NULL]
        elements = encode(column.take(self._order))
        _, offsets, data = elements.buffers()
        ends = numpy.frombuffer(offsets, dtype=numpy.int32)[elements.offset :][self._bounds]
        bodies = pa.Array.from_buffers(pa.binary(), len(self._lengths), [None, pa.py_buffer(ends), data])
        headers = numpy.empty(len(self._lengths), dtype=ARRAY)
        headers["size"] = ARRAY.itemsize - 4 + numpy.diff(ends)
        headers["dimensions"] = headers["first"] = 1
        headers["has_null"] = kind != stage.BYTEA_OID
        headers["kind"] = kind
        headers["length"] = self._lengths
        if not column.null_count:
            return [_to_binary(headers), bodies]
        valid = pc.is_valid(column).take(self._order).to_numpy(zero_copy_only=False)
        has_any = pa.array(numpy.logical_or.reduceat(valid, self._bounds[:-1]))
        return [pc.if_else(has_any, _to_binary(headers), stage.NULL), pc.if_else(has_any, bodies, b"")]


def _join(pieces: list[Any]) -> memoryview:
    rows = pc.binary_join_element_wise(*pieces, b"")
    _, offsets, data = rows.buffers()
    ends = numpy.frombuffer(offsets, dtype=numpy.int32)[rows.offset :]
    return memoryview(data)[ends[0] : ends[len(rows)]]


def _prefix_with_length(column: Any) -> Any:
    return pc.binary_join_element_wise(*_lengths_and_bytes(column), b"")


def _lengths_and_bytes(column: Any) -> list[Any]:
    """Return the lengths and the bytes of a column's values; a null has length -1 and no bytes."""
    binary = column.cast(pa.binary())
    lengths = pc.binary_length(binary).fill_null(-1).to_numpy(zero_copy_only=False).astype(">i4")
    return [_to_binary(lengths), binary.fill_null(b"") if binary.null_count else binary]


def _encode_numbers(column: Any, layout: numpy.dtype[Any]) -> Any:
    packed = numpy.empty(len(column), dtype=layout)
    packed["length"] = layout.itemsize - 4
    packed["value"] = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    fixed = _to_binary(packed)
    return pc.if_else(pc.is_valid(column), fixed, stage.NULL) if column.null_count else fixed


def _to_binary(values: numpy.ndarray[Any, Any]) -> pa.Array:
    """Return the memory of each element as a binary value."""
    kind = pa.binary(values.dtype.itemsize)
    buffer = pa.py_buffer(numpy.ascontiguousarray(values).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, buffer]).cast(pa.binary())


def _encode_max_attempts(column: Any) -> Any:
    try:
        return None if column is None else column.cast(pa.int32())
    except pa.ArrowInvalid:
        raise InvalidArgument("column max_attempts must be a whole number from 1 to 2147483647") from None


def _encode_headers(column: Any) -> Any:
    """Return headers, from maps or JSON, as PostgreSQL receives jsonb."""
    if column is None or column.null_count == len(column):
        return None
    encoded = [_encode_header_map(value) for value in column.to_pylist()]
    return pa.array(encoded, pa.binary())


def _encode_header_map(value: Any) -> bytes | None:
    try:
        # Arrow's maps are lists of pairs.
        given = json.loads(value) if isinstance(value, str) else None if value is None else dict(value)
        text = encode_headers(given)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"column headers: {error}") from None
    return None if text is None else (stage.JSONB_VERSION + text).encode("utf-8")


def _encode_content(column: Any) -> Any:
    if pa.types.is_nested(column.type):
        column = pa.array([_encode_json(value, column.type) for value in column.to_pylist()], pa.binary())
    largest = pc.max(pc.binary_length(column)).as_py()
    if largest is not None and largest > MAX_CONTENT_BYTES:
        raise InvalidArgument(f"column content must be at most {MAX_CONTENT_BYTES} bytes, got {largest}")
    return column


def _encode_json(value: Any, kind: Any) -> bytes:
    try:
        text = json.dumps(
            _to_json_value(value, kind), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except ValueError:
        raise InvalidArgument(
            "column content has a number that JSON cannot represent: NaN or infinity"
        ) from None
    return text.encode("utf-8")


def _to_json_value(value: Any, kind: Any) -> Any:
    """Convert a value of an Arrow type to one that `json.dumps` accepts."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _to_json_value(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {
            str(_to_json_value(key, kind.key_type)): _to_json_value(item, kind.item_type)
            for key, item in value
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_to_json_value(item, kind.value_type) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        return str(value)
    return value
