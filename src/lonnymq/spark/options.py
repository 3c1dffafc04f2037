"""The options of each operation of the data source, parsed into values. Does not import Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lonnymq.calls import argument
from lonnymq.connections.settings import ClientSettings, connection_options
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.schema import require_schema
from lonnymq.spark import columns

COMMON = ("dsn", "schema")
READ = ("table", "columns", "rows_per_partition")
STREAM = (*READ, "mode", "reader", "starting", "max_rows", "rebase")
MAX_LEASE_S = argument.MAX_LEASE_MS // 1000
CONSUME = ("mode", "consumer", "max_messages", "lease_s", "max_claim_s", "rows_per_partition")
WRITE = ("job", "stream_id", "any_time")
# Spark passes the properties of a table that is being created, but no options to reads and writes of one.
TABLE_REFUSED = (
    "A queue cannot be a table of Spark's catalog, which would keep no options: write with"
    ' df.write.format("lonnymq").option("dsn", ...).mode("append").save(), and for SQL use a temporary view'
    ' of spark.read.format("lonnymq").option("dsn", ...).load()'
)
# Options for Spark itself, which it passes on to sources.
IGNORED = ("checkpointlocation",)


@dataclass(frozen=True)
class ConnectionOptions:
    """Which queue to use. The connection string is never shown, because it may contain a password."""

    dsn: str = field(repr=False)
    schema: str = "lonnymq"


@dataclass(frozen=True)
class ReadOptions:
    connect: ConnectionOptions
    table: str
    columns: tuple[columns.Column, ...]
    rows_per_partition: int


@dataclass(frozen=True)
class FollowOptions:
    """How a stream follows history."""

    read: ReadOptions
    reader: str
    is_latest: bool
    max_rows: int
    is_rebase: bool


@dataclass(frozen=True)
class ConsumeOptions:
    """How a stream consumes messages."""

    connect: ConnectionOptions
    consumer: str
    # Only a consumer with a name of its own may resume a claim that it took before its first logged batch.
    is_named: bool
    max_messages: int
    lease_s: int
    max_claim_s: int
    rows_per_partition: int


@dataclass(frozen=True)
class WriteOptions:
    connect: ConnectionOptions
    job: str | None
    stream_id: str | None
    # Whether dequeue_at may be in any year; before 1970 it is a priority.
    allows_any_time: bool = False


def redactable(dsn: str) -> str:
    """Return the connection string in a form that Spark hides in plans.

    Spark hides values that contain the word `password`, which a URL does not. A string that cannot be parsed
    is returned unchanged and refused later.
    """
    try:
        return make_conninfo("", **conninfo_to_dict(dsn))
    except ProgrammingError:
        return dsn


def refuse_unknown(given: Mapping[str, str]) -> None:
    """Refuse options that no operation has: a typing error would otherwise select the default silently."""
    _refuse_others(given, (*STREAM, *CONSUME, *WRITE), "an option")


def is_consume(given: Mapping[str, str]) -> bool:
    return _choice(given, "mode", "history", ("history", "consume")) == "consume"


def read_columns(given: Mapping[str, str]) -> tuple[columns.Column, ...]:
    """Return the columns of a read or a stream with these options."""
    return _read_options(given).columns


def parse_read(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of `spark.read`."""
    _refuse_others(given, READ, "an option of spark.read")
    return _read_options(given)


def parse_follow(given: Mapping[str, str]) -> FollowOptions:
    """Parse the options of `spark.readStream` of history."""
    _refuse_others(given, STREAM, "an option of spark.readStream of history")
    read = _read_options(given)
    if read.table != "history":
        raise invalid("table", read.table, "history for a stream; read other tables with spark.read")
    return FollowOptions(
        read=read,
        reader=argument.text("reader", given.get("reader", "spark"), 1, 255),
        is_latest=_choice(given, "starting", "earliest", ("earliest", "latest")) == "latest",
        max_rows=_integer(given, "max_rows", 1_000_000, 1, argument.MAX_INTEGER),
        is_rebase=_choice(given, "rebase", "false", ("false", "true")) == "true",
    )


def parse_consume(given: Mapping[str, str]) -> ConsumeOptions:
    """Parse the options of `spark.readStream` in mode consume."""
    _refuse_others(given, CONSUME, "an option of mode consume")
    return ConsumeOptions(
        connect=_connection_options(given),
        consumer=argument.text("consumer", given.get("consumer", "spark"), 1, 255),
        is_named="consumer" in given,
        max_messages=_integer(given, "max_messages", 1000, 1, 10_000),
        lease_s=_integer(given, "lease_s", 60, 1, MAX_LEASE_S),
        max_claim_s=_integer(given, "max_claim_s", 3600, 1, MAX_LEASE_S),
        rows_per_partition=_integer(given, "rows_per_partition", 500, 1, 10_000),
    )


def parse_write(given: Mapping[str, str], is_stream: bool) -> WriteOptions:
    """Parse the options of `df.write` or `df.writeStream`."""
    operation = "df.writeStream" if is_stream else "df.write"
    name = "stream_id" if is_stream else "job"
    _refuse_others(given, (name, "any_time"), f"an option of {operation}")
    return WriteOptions(
        connect=_connection_options(given),
        job=_optional_name(given, "job", 255),
        stream_id=_optional_name(given, "stream_id", 240),
        allows_any_time=_choice(given, "any_time", "false", ("false", "true")) == "true",
    )


def _read_options(given: Mapping[str, str]) -> ReadOptions:
    table = _choice(given, "table", "history", tuple(columns.TABLES))
    names = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
    return ReadOptions(
        connect=_connection_options(given),
        table=table,
        columns=columns.choose(columns.TABLES[table], names),
        rows_per_partition=_integer(given, "rows_per_partition", 250_000, 1, argument.MAX_INTEGER),
    )


def _connection_options(given: Mapping[str, str]) -> ConnectionOptions:
    if not given.get("dsn"):
        raise InvalidArgument(f'dsn must be given: option("dsn", "postgresql://..."). {TABLE_REFUSED}')
    connection_options(given["dsn"], ClientSettings())
    _refuse_shown_password(given["dsn"])
    schema = given.get("schema", "lonnymq")
    require_schema(schema)
    return ConnectionOptions(given["dsn"], schema)


def _refuse_shown_password(dsn: str) -> None:
    """Refuse a password in a URL: Spark's plans and its user interface would show it."""
    if dsn.startswith(("postgresql://", "postgres://")) and "password" in conninfo_to_dict(dsn):
        raise InvalidArgument(
            "dsn must not be a URL with a password, which Spark would show in plans and its user interface:"
            ' write "host=... dbname=... user=... password=...", which Spark hides, or leave the password to'
            " PGPASSFILE or a service"
        )


def _refuse_others(given: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
    allowed = (*COMMON, *dict.fromkeys(known))
    if "provider" in given:
        raise InvalidArgument(TABLE_REFUSED)
    for name in given:
        if name.lower() not in (*allowed, *IGNORED):
            # The value is left out, because it may be a password.
            raise InvalidArgument(f"{name} is not {what}: options are {', '.join(allowed)}")


def _choice(given: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    choice = given.get(name, default).lower()
    if choice not in choices:
        raise invalid(name, given[name], f"one of {', '.join(choices)}")
    return choice


def _integer(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise invalid(name, text, f"a whole number between {least} and {most}")
    return argument.whole(name, int(text), least, most)


def _optional_name(given: Mapping[str, str], name: str, most: int) -> str | None:
    return argument.text(name, given[name], 1, most) if name in given else None
