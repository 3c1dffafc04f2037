"""Options and frames are checked once, on the driver, and refused with a clear error."""

from typing import Any

import pytest
from pyspark.sql import types

from lonnymq import InvalidArgument
from lonnymq.spark import columns, options, write_schema
from lonnymq.spark.source import LonnySource

SECRET = "host=localhost dbname=x user=me password=top-secret"


def given(**more: str) -> dict[str, str]:
    return {"dsn": SECRET, **more}


def test_each_operation_has_its_defaults() -> None:
    read = options.parse_read(given())
    assert (read.table, read.columns) == ("history", columns.HISTORY)
    follow = options.parse_follow(given())
    assert (follow.reader, follow.is_latest, follow.is_rebase) == ("spark", False, False)
    consume = options.parse_consume(given(mode="consume"))
    assert (consume.consumer, consume.is_named, consume.max_messages) == ("spark", False, 1000)
    assert options.parse_write(given(job="j"), is_stream=False).job == "j"


@pytest.mark.parametrize(
    ("parse", "wrong", "words"),
    [
        (options.parse_read, {"dsn": ""}, "dsn must be given"),
        (options.parse_read, {"dsn": "nonsense"}, "dsn must be a libpq connection string"),
        (
            options.parse_read,
            {"dsn": "postgresql://me:top-secret@h/x"},
            "dsn must not be a URL with a password",
        ),
        (options.parse_read, {"dsn": "", "provider": "lonnymq"}, "cannot be a table of Spark's catalog"),
        (options.parse_read, {"columns": "channel,CHANNEL"}, "columns must be some of"),
        (options.parse_read, {"schema": "pg_mine"}, "schema must be"),
        (
            options.parse_read,
            {"table": "turn"},
            "table must be one of history, message, channel, lease, dead",
        ),
        (options.parse_read, {"columns": "channel, nonsense"}, "columns must be some of message_id"),
        (options.parse_read, {"columns": "channel,channel"}, "columns must be some of"),
        (options.parse_read, {"rows_per_partition": "0"}, "rows_per_partition must be"),
        (options.parse_read, {"rows_per_partition": "9" * 5000}, "rows_per_partition must be a whole number"),
        (options.parse_read, {"rows_per_partition": "many"}, "rows_per_partition must be a whole number"),
        (options.parse_read, {"jbo": "j"}, "jbo is not an option of spark.read"),
        (options.parse_read, {"job": "j"}, "job is not an option of spark.read"),
        (options.parse_follow, {"table": "message"}, "table must be history"),
        (options.parse_follow, {"starting": "now"}, "starting must be one of earliest, latest"),
        (options.parse_follow, {"reader": ""}, "reader must be"),
        (options.parse_follow, {"max_rows": "-5"}, "max_rows must be"),
        (options.parse_follow, {"rebase": "yes"}, "rebase must be one of"),
        (options.parse_consume, {"mode": "consume", "max_messages": "10001"}, "max_messages must be"),
        (options.parse_consume, {"mode": "consume", "lease_s": "0"}, "lease_s must be"),
        (
            options.parse_consume,
            {"mode": "consume", "table": "dead"},
            "table is not an option of mode consume",
        ),
    ],
)
def test_a_wrong_option_is_named_in_the_error_without_its_secrets(
    parse: Any, wrong: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidArgument, match=words) as raised:
        parse(given(**wrong))
    assert "top-secret" not in str(raised.value)


def test_parsed_options_do_not_show_the_connection_string() -> None:
    for parsed in (
        options.parse_read(given()),
        options.parse_follow(given()),
        options.parse_consume(given(mode="consume")),
        options.parse_write(given(), is_stream=True),
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
        (
            frame_of(channel=TEXT, content=TEXT, tenant=TEXT),
            "column tenant is unknown: columns are channel, content",
        ),
        (frame_of(channel=types.IntegerType(), content=TEXT), "column channel is int; it must be string"),
        (frame_of(channel=TEXT, content=types.DoubleType()), "column content is double"),
        (frame_of(channel=TEXT, content=TEXT, dequeue_at=types.TimestampNTZType()), "is timestamp_ntz"),
        (frame_of(channel=TEXT, content=TEXT, priority=TEXT), "column priority is string"),
        (
            frame_of(channel=TEXT, content=frame_of(a=types.ArrayType(types.DayTimeIntervalType()))),
            r"content\.a\[\] is interval day to second, which JSON cannot represent",
        ),
        (
            frame_of(channel=TEXT, content=types.MapType(frame_of(a=TEXT), types.VariantType())),
            r"content\[\] is variant.*; content has keys of type struct<a:string>",
        ),
        (frame_of(tenant=TEXT), "channel is missing; column content is missing; column tenant is unknown"),
    ],
)
def test_one_error_lists_everything_wrong_with_a_frame(schema: types.StructType, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        write_schema.check_schema(schema)


def test_a_frame_may_have_every_column_and_nested_content() -> None:
    whole = types.IntegerType()
    odd = frame_of(a=types.DecimalType(9, 2), b=types.DateType(), c=types.NullType(), d=types.BinaryType())
    nested = (frame_of(a=whole), types.MapType(TEXT, whole), types.ArrayType(whole), odd)
    for content in (types.BinaryType(), TEXT, *nested):
        write_schema.check_schema(frame_of(channel=TEXT, content=content, key=TEXT, max_attempts=whole))
    for at in (types.TimestampType(), types.LongType()):
        write_schema.check_schema(
            frame_of(channel=TEXT, content=TEXT, dequeue_at=at, delay_ms=whole, priority=whole)
        )


def test_upper_and_lower_case_of_column_names_are_the_same() -> None:
    write_schema.check_schema(frame_of(Channel=TEXT, CONTENT=TEXT))
    with pytest.raises(InvalidArgument, match="a column name occurs twice"):
        write_schema.check_schema(frame_of(channel=TEXT, content=TEXT, Content=TEXT))
    assert LonnySource(given(columns="ID")).schema() == "`id` bigint"


def test_overwrite_mode_and_user_defined_schemas_are_refused() -> None:
    source = LonnySource(given())
    with pytest.raises(InvalidArgument, match="mode must be append"):
        source.writer(WRITABLE, overwrite=True)
    with pytest.raises(InvalidArgument, match="schema must not be given"):
        source.reader(WRITABLE)


def test_chosen_columns_are_read_in_the_given_order() -> None:
    source = LonnySource(given(columns="id, channel", max_rows="5"))
    assert source.schema() == "`id` bigint, `channel` string"
