"""Arrow batches as rows of sql/copy.sql in COPY's binary format, whole columns at a time."""

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from lonnymq.calls import stage
from lonnymq.errors import InvalidArgument

# Arrow's offsets are 32 bits wide: batches beyond this are cut.
MAX_BATCH_BYTES = 256 * 2**20
BIGINT = numpy.dtype([("length", ">i4"), ("value", ">i8")])
INTEGER = numpy.dtype([("length", ">i4"), ("value", ">i4")])


class Encoder:
    """Encodes the batches of one part, counting its rows."""

    def __init__(self, publication: str, part: UUID) -> None:
        name = publication.encode("utf-8")
        self._prefix = b"".join(
            (stage.COLUMNS, stage.LENGTH.pack(len(name)), name, stage.LENGTH.pack(16), part.bytes)
        )
        self.count = 0

    def encode(self, batch: pa.RecordBatch) -> Iterator[memoryview]:
        """Yield what COPY sends for a batch."""
        if batch.nbytes > MAX_BATCH_BYTES and batch.num_rows > 1:
            middle = batch.num_rows // 2
            yield from self.encode(batch.slice(0, middle))
            yield from self.encode(batch.slice(middle))
        elif batch.num_rows:
            yield _joined(self._row(batch))
            self.count += batch.num_rows

    def _row(self, batch: pa.RecordBatch) -> list[Any]:
        """Return the pieces of each row, a column for each."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in ("channel", "content"):
            if columns[name].null_count:
                raise InvalidArgument(
                    f"column {name} must not be null, and is in {columns[name].null_count} rows"
                )
        ordinals = pa.array(numpy.arange(self.count, self.count + batch.num_rows))
        return [
            self._prefix,
            _numbers(ordinals, BIGINT),
            *_bytes(columns["channel"]),
            *_bytes(_content(columns["content"])),
            _numbers(_dequeue_at(columns.get("dequeue_at"), columns.get("priority")), BIGINT),
            _numbers(columns.get("delay_ms"), BIGINT),
            *_bytes(columns.get("key")),
            _numbers(_max_attempts(columns.get("max_attempts")), INTEGER),
        ]


def _joined(pieces: list[Any]) -> memoryview:
    rows = pc.binary_join_element_wise(*pieces, b"")
    _, offsets, data = rows.buffers()
    ends = numpy.frombuffer(offsets, dtype=numpy.int32)[rows.offset :]
    return memoryview(data)[ends[0] : ends[len(rows)]]


def _bytes(column: Any) -> list[Any]:
    """Return the lengths and the bytes; the length of null is -1, and it has none."""
    if column is None:
        return [stage.NULL]
    binary = column.cast(pa.binary())
    lengths = pc.binary_length(binary).fill_null(-1).to_numpy(zero_copy_only=False).astype(">i4")
    return [_fixed(lengths), binary.fill_null(b"") if binary.null_count else binary]


def _numbers(column: Any, layout: numpy.dtype[Any]) -> Any:
    if column is None:
        return stage.NULL
    packed = numpy.empty(len(column), dtype=layout)
    packed["length"] = layout.itemsize - 4
    packed["value"] = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    fixed = _fixed(packed)
    return pc.if_else(pc.is_valid(column), fixed, stage.NULL) if column.null_count else fixed


def _fixed(values: numpy.ndarray[Any, Any]) -> pa.Array:
    """Return an array's elements as bytes."""
    kind = pa.binary(values.dtype.itemsize)
    whole = pa.py_buffer(numpy.ascontiguousarray(values).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, whole]).cast(pa.binary())


def _dequeue_at(at: Any, priority: Any) -> Any:
    """Return one number for time and priority: what sorts before every time comes first."""
    if at is not None and pa.types.is_timestamp(at.type):
        milliseconds = at.cast(pa.timestamp("us", at.type.tz)).cast(pa.int64())
        floored = milliseconds.fill_null(0).to_numpy(zero_copy_only=False) // 1000
        at = pa.array(floored, mask=pc.is_null(at).to_numpy(zero_copy_only=False))
    if priority is None:
        return at
    lowest = pc.min(priority).as_py()
    if lowest is not None and lowest < 1:
        raise InvalidArgument(f"column priority must be at least 1, got {lowest}")
    first = pc.negate(priority.cast(pa.int64()))
    if at is None:
        return first
    if pc.any(pc.and_(pc.is_valid(at), pc.is_valid(priority))).as_py():
        raise InvalidArgument("dequeue_at and priority must be given one at a time, and a row has both")
    return pc.coalesce(at.cast(pa.int64()), first)


def _max_attempts(column: Any) -> Any:
    try:
        return None if column is None else column.cast(pa.int32())
    except pa.ArrowInvalid:
        raise InvalidArgument("column max_attempts must be at most 2147483647") from None


def _content(column: Any) -> Any:
    if pa.types.is_nested(column.type):
        return pa.array([_json(value, column.type) for value in column.to_pylist()], pa.binary())
    return column


def _json(value: Any, kind: Any) -> bytes:
    try:
        text = json.dumps(_plain(value, kind), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise InvalidArgument(
            "column content has a number that JSON does not know: NaN or infinite"
        ) from None
    return text.encode("utf-8")


def _plain(value: Any, kind: Any) -> Any:
    """Return what JSON knows for a value of an Arrow type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {str(_plain(key, kind.key_type)): _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        return str(value)
    return value
