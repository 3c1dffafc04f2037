"""Encoding whole columns produces the same bytes as encoding row by row."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lonnymq import InvalidArgument
from lonnymq.calls import stage
from lonnymq.calls.draft import Draft
from lonnymq.calls.headers import encode_headers
from lonnymq.spark.encode import Encoder

PART = UUID(int=7)
BIGINTS = st.integers(-(2**62), 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", ""]) | TEXTS,
        st.binary(max_size=20),
        st.none() | BIGINTS,
        st.none() | BIGINTS,
        st.none() | TEXTS,
        st.none() | st.integers(1, 2**31 - 1),
        st.none() | st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3).map(encode_headers),
    ),
    max_size=20,
)
SCHEMA = pa.schema(
    [
        ("channel", pa.string()),
        ("content", pa.binary()),
        ("dequeue_at", pa.int64()),
        ("delay_ms", pa.int64()),
        ("key", pa.string()),
        ("max_attempts", pa.int32()),
        ("headers", pa.string()),
    ]
)


def encode_columns(*batches: pa.RecordBatch, allows_any_time: bool = True) -> bytes:
    encoder = Encoder("p", PART, allows_any_time=allows_any_time)
    chunks = [bytes(chunk) for batch in batches for chunk in encoder.encode(batch)]
    chunks += [bytes(chunk) for chunk in encoder.flush()]
    assert encoder.count == sum(batch.num_rows for batch in batches)
    return b"".join(chunks)


def encode_rows(*rows: Draft) -> bytes:
    packer = stage.Packer("p", PART)
    return b"".join([*(packer.flush() for row in rows if packer.add(row)), packer.flush()])


def one(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"channel": pa.array(["a"]), "content": pa.array([b"x"]), **columns})


@given(ROWS, st.integers(0, 20))
def test_encoding_by_column_equals_encoding_by_row(rows: list[tuple[Any, ...]], cut: int) -> None:
    expected = encode_rows(*(Draft(*row) for row in rows))
    arrays = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(SCHEMA)]
    batch = pa.record_batch(arrays, schema=SCHEMA)
    assert encode_columns(batch) == expected
    # The same in two batches, whose columns start in the middle of their buffers.
    assert encode_columns(batch.slice(0, cut), batch.slice(cut)) == expected


def test_a_priority_or_a_time_becomes_dequeue_at() -> None:
    assert encode_columns(one(priority=pa.array([5]))) == encode_rows(Draft("a", b"x", -5, None, None, None))
    before = datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)
    at = pa.array([before], pa.timestamp("us", "UTC"))
    assert encode_columns(one(dequeue_at=at)) == encode_rows(Draft("a", b"x", -1, None, None, None))
    nothing = pa.array([None], pa.timestamp("us", "UTC"))
    both = one(dequeue_at=nothing, priority=pa.array([2], pa.int16()))
    assert encode_columns(both) == encode_rows(Draft("a", b"x", -2, None, None, None))


@pytest.mark.parametrize(
    "at",
    [
        pa.array([datetime(1900, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array([datetime(2200, 1, 1)], pa.timestamp("us")),
        pa.array([1_900_000_000]),  # seconds instead of milliseconds
        pa.array([0], pa.int32()),
    ],
)
def test_a_time_that_must_be_a_mistake_is_refused_unless_any_time_is_allowed(at: Any) -> None:
    with pytest.raises(InvalidArgument, match="not in the years 2000 to 2199: correct it, or allow any time"):
        encode_columns(one(dequeue_at=at), allows_any_time=False)
    assert encode_columns(one(dequeue_at=at))


def test_plausible_times_and_names_in_any_case_are_encoded() -> None:
    ends = [datetime(2000, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), None]
    at = pa.array(ends, pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"Channel": ["a"] * 3, "CONTENT": [b"x"] * 3, "Dequeue_At": at})
    rows = [Draft("a", b"x", ms, None, None, None) for ms in (946_684_800_000, 7_258_118_399_999, None)]
    assert encode_columns(batch, allows_any_time=False) == encode_rows(*rows)


def test_a_content_that_no_queue_accepts_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidArgument, match="content must be at most 67108864 bytes, got 67108865"):
        encode_columns(one(content=pa.array([bytes(67_108_865)])))


def test_structs_become_json() -> None:
    kind = pa.struct(
        [
            ("n", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.string())),
            ("by", pa.map_(pa.string(), pa.int32())),
            ("none", pa.string()),
        ]
    )
    value = {"n": 1, "at": datetime(2026, 1, 2, tzinfo=UTC), "tags": ["ä"], "by": [("k", 2)], "none": None}
    batch = pa.record_batch({"channel": pa.array(["a"]), "content": pa.array([value], kind)})
    text = '{"n":1,"at":"2026-01-02T00:00:00+00:00","tags":["ä"],"by":{"k":2},"none":null}'.encode()
    assert encode_columns(batch) == encode_rows(Draft("a", text, None, None, None, None))


def test_headers_may_be_maps_or_json() -> None:
    kind = pa.map_(pa.string(), pa.string())
    expected = encode_rows(Draft("a", b"x", None, None, None, None, '{"k": "ä"}'))
    assert encode_columns(one(headers=pa.array([[("k", "ä")]], kind))) == expected
    assert encode_columns(one(headers=pa.array(['{"k":"\\u00e4"}']))) == expected
    none = encode_rows(Draft("a", b"x", None, None, None, None))
    assert encode_columns(one(headers=pa.array([[]], kind))) == none
    assert encode_columns(one(headers=pa.array([None], kind))) == none


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"channel": pa.array([None], pa.string())}, "channel must not be null"),
        ({"content": pa.array([None], pa.binary())}, "content must not be null"),
        ({"priority": pa.array([0])}, "priority must be at least 1"),
        ({"priority": pa.array([1]), "dequeue_at": pa.array([1])}, "must not both be given"),
        ({"content": pa.array([{"x": float("nan")}])}, "NaN"),
        ({"max_attempts": pa.array([2**32 + 1])}, "max_attempts must be a whole number from 1 to"),
        ({"headers": pa.array(["{"])}, "column headers: "),
        ({"headers": pa.array(["[" * 100_000])}, "column headers: "),
        ({"headers": pa.array(["[]"])}, "column headers: headers must be a mapping"),
        ({"headers": pa.array(['{"k": 5}'])}, "column headers: header 'k' must be a string, got 5"),
    ],
)
def test_rows_that_cannot_be_messages_are_refused(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        encode_columns(one(**columns))
