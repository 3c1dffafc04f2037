"""What users say to Spark is understood once, on the driver, or refused in one sentence."""

from typing import Any

import pytest
from pyspark.sql import types

from lonnymq import InvalidArgument
from lonnymq.spark import columns, frame, options
from lonnymq.spark.source import LonnySource

SECRET = "postgresql://me:top-secret@localhost/x"


def given(**more: str) -> dict[str, str]:
    return {"dsn": SECRET, **more}


def test_each_door_has_its_defaults() -> None:
    read = options.read(given())
    assert (read.table, read.columns) == ("history", columns.HISTORY)
    follow = options.follow(given())
    assert (follow.reader, follow.is_latest, follow.is_rebase) == ("spark", False, False)
    consume = options.consume(given(mode="consume"))
    assert (consume.consumer, consume.is_alone, consume.max_messages) == ("spark", False, 1000)
    assert options.write(given(job="j"), is_stream=False).job == "j"


@pytest.mark.parametrize(
    ("door", "wrong", "words"),
    [
        (options.read, {"dsn": ""}, "dsn must be given"),
        (options.read, {"dsn": "nonsense"}, "dsn must be a libpq connection string"),
        (options.read, {"schema": "pg_mine"}, "schema must be"),
        (options.read, {"table": "turn"}, "table must be one of history, message, channel, lease, dead"),
        (options.read, {"columns": "channel, nonsense"}, "columns must be some of message_id"),
        (options.read, {"columns": "channel,channel"}, "columns must be some of"),
        (options.read, {"rows_per_partition": "0"}, "rows_per_partition must be"),
        (options.read, {"rows_per_partition": "9" * 5000}, "rows_per_partition must be a whole number"),
        (options.read, {"rows_per_partition": "many"}, "rows_per_partition must be a whole number"),
        (options.read, {"jbo": "j"}, "jbo is not an option of spark.read"),
        (options.read, {"job": "j"}, "job is not an option of spark.read"),
        (options.follow, {"table": "message"}, "table must be history"),
        (options.follow, {"starting": "now"}, "starting must be one of earliest, latest"),
        (options.follow, {"reader": ""}, "reader must be"),
        (options.follow, {"max_rows": "-5"}, "max_rows must be"),
        (options.follow, {"rebase": "yes"}, "rebase must be one of"),
        (options.consume, {"mode": "consume", "max_messages": "10001"}, "max_messages must be"),
        (options.consume, {"mode": "consume", "lease_s": "0"}, "lease_s must be"),
        (options.consume, {"mode": "consume", "table": "dead"}, "table is not an option of mode consume"),
    ],
)
def test_a_wrong_option_is_one_clear_error(door: Any, wrong: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words) as raised:
        door(given(**wrong))
    assert "top-secret" not in str(raised.value)


def test_a_connection_string_is_never_shown() -> None:
    for parsed in (
        options.read(given()),
        options.follow(given()),
        options.consume(given(mode="consume")),
        options.write(given(), is_stream=True),
    ):
        assert "top-secret" not in repr(parsed)


def frame_of(**columns: types.DataType) -> types.StructType:
    return types.StructType([types.StructField(name, kind) for name, kind in columns.items()])


TEXT = types.StringType()
WRITABLE = frame_of(channel=TEXT, content=TEXT)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (frame_of(content=TEXT), "column channel is missing"),
        (frame_of(channel=TEXT, content=TEXT, tenant=TEXT), "column tenant is not one of channel, content"),
        (frame_of(channel=types.IntegerType(), content=TEXT), "column channel is int, and must be string"),
        (frame_of(channel=TEXT, content=types.DoubleType()), "column content is double"),
        (frame_of(channel=TEXT, content=TEXT, dequeue_at=types.TimestampNTZType()), "is timestamp_ntz"),
        (frame_of(channel=TEXT, content=TEXT, priority=TEXT), "column priority is string"),
        (
            frame_of(channel=TEXT, content=frame_of(a=types.ArrayType(types.DayTimeIntervalType()))),
            r"content\.a\[\] is interval day to second, which JSON does not know",
        ),
        (
            frame_of(channel=TEXT, content=types.MapType(frame_of(a=TEXT), types.VariantType())),
            r"content\[\] is variant.*; content has keys of struct<a:string>",
        ),
        (frame_of(tenant=TEXT), "channel is missing; column content is missing; column tenant is not"),
    ],
)
def test_a_frame_that_cannot_be_written_is_refused_with_all_that_is_wrong(
    schema: types.StructType, words: str
) -> None:
    with pytest.raises(InvalidArgument, match=words):
        frame.require(schema)


def test_a_frame_of_every_column_is_welcome() -> None:
    whole = types.IntegerType()
    odd = frame_of(a=types.DecimalType(9, 2), b=types.DateType(), c=types.NullType(), d=types.BinaryType())
    nested = (frame_of(a=whole), types.MapType(TEXT, whole), types.ArrayType(whole), odd)
    for content in (types.BinaryType(), TEXT, *nested):
        frame.require(frame_of(channel=TEXT, content=content, key=TEXT, max_attempts=whole))
    for at in (types.TimestampType(), types.LongType()):
        frame.require(frame_of(channel=TEXT, content=TEXT, dequeue_at=at, delay_ms=whole, priority=whole))


def test_overwriting_and_schemas_of_others_are_refused() -> None:
    source = LonnySource(given())
    with pytest.raises(InvalidArgument, match="mode must be append"):
        source.writer(WRITABLE, overwrite=True)
    with pytest.raises(InvalidArgument, match="schema must not be given"):
        source.reader(WRITABLE)


def test_the_columns_that_are_asked_for_come_in_that_order() -> None:
    source = LonnySource(given(columns="id, channel", max_rows="5"))
    assert source.schema() == "`id` bigint, `channel` string"
