"""Options of the data source, parsed once into a value; each door has its own. No Spark here."""

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
WRITE = ("job", "stream_id")
# Spark's own, which it passes on.
IGNORED = ("checkpointlocation",)


@dataclass(frozen=True)
class Connect:
    """Which queue; the connection string is never shown, it may hold a password."""

    dsn: str = field(repr=False)
    schema: str = "lonnymq"


@dataclass(frozen=True)
class ReadOptions:
    connect: Connect
    table: str
    columns: tuple[columns.Column, ...]
    rows_per_partition: int


@dataclass(frozen=True)
class FollowOptions:
    """How history is followed."""

    read: ReadOptions
    reader: str
    is_latest: bool
    max_rows: int
    is_rebase: bool


@dataclass(frozen=True)
class ConsumeOptions:
    """How messages are consumed."""

    connect: Connect
    consumer: str
    # Only who has a name of its own may take up what it left behind before its first batch.
    is_alone: bool
    max_messages: int
    lease_s: int
    max_claim_s: int
    rows_per_partition: int


@dataclass(frozen=True)
class WriteOptions:
    connect: Connect
    job: str | None
    stream_id: str | None


def redactable(dsn: str) -> str:
    """Return a connection string that Spark hides in plans, because it has the word `password` in it.

    A URL with a password in it has not. What is no connection string is left as it is, to be refused.
    """
    try:
        return make_conninfo("", **conninfo_to_dict(dsn))
    except ProgrammingError:
        return dsn


def require_known(given: Mapping[str, str]) -> None:
    """Refuse what no door knows: it is a typing error, and would be a silent default."""
    _refuse_others(given, (*STREAM, *CONSUME, *WRITE), "an option")


def is_consume(given: Mapping[str, str]) -> bool:
    return _word(given, "mode", "history", ("history", "consume")) == "consume"


def read_columns(given: Mapping[str, str]) -> tuple[columns.Column, ...]:
    """Return the columns that a read, or a stream, of these options has."""
    return _read(given).columns


def read(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of `spark.read`."""
    _refuse_others(given, READ, "an option of spark.read")
    return _read(given)


def follow(given: Mapping[str, str]) -> FollowOptions:
    """Parse the options of `spark.readStream` of history."""
    _refuse_others(given, STREAM, "an option of spark.readStream of history")
    found = _read(given)
    if found.table != "history":
        raise invalid("table", found.table, "history, for a stream; others are read by spark.read")
    return FollowOptions(
        read=found,
        reader=argument.text("reader", given.get("reader", "spark"), 1, 255),
        is_latest=_word(given, "starting", "earliest", ("earliest", "latest")) == "latest",
        max_rows=_whole(given, "max_rows", 1_000_000, 1, argument.MAX_INTEGER),
        is_rebase=_word(given, "rebase", "false", ("false", "true")) == "true",
    )


def consume(given: Mapping[str, str]) -> ConsumeOptions:
    """Parse the options of `spark.readStream` in mode consume."""
    _refuse_others(given, CONSUME, "an option of mode consume")
    return ConsumeOptions(
        connect=_connect(given),
        consumer=argument.text("consumer", given.get("consumer", "spark"), 1, 255),
        is_alone="consumer" in given,
        max_messages=_whole(given, "max_messages", 1000, 1, 10_000),
        lease_s=_whole(given, "lease_s", 60, 1, MAX_LEASE_S),
        max_claim_s=_whole(given, "max_claim_s", 3600, 1, MAX_LEASE_S),
        rows_per_partition=_whole(given, "rows_per_partition", 500, 1, 10_000),
    )


def write(given: Mapping[str, str], is_stream: bool) -> WriteOptions:
    """Parse the options of `df.write` or `df.writeStream`."""
    door = "df.writeStream" if is_stream else "df.write"
    _refuse_others(given, ("stream_id",) if is_stream else ("job",), f"an option of {door}")
    return WriteOptions(
        connect=_connect(given),
        job=_optional_name(given, "job", 255),
        stream_id=_optional_name(given, "stream_id", 240),
    )


def _read(given: Mapping[str, str]) -> ReadOptions:
    table = _word(given, "table", "history", tuple(columns.TABLES))
    names = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
    return ReadOptions(
        connect=_connect(given),
        table=table,
        columns=columns.chosen(columns.TABLES[table], names),
        rows_per_partition=_whole(given, "rows_per_partition", 250_000, 1, argument.MAX_INTEGER),
    )


def _connect(given: Mapping[str, str]) -> Connect:
    if not given.get("dsn"):
        raise InvalidArgument('dsn must be given: option("dsn", "postgresql://...")')
    connection_options(given["dsn"], ClientSettings())
    schema = given.get("schema", "lonnymq")
    require_schema(schema)
    return Connect(given["dsn"], schema)


def _refuse_others(given: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
    allowed = (*COMMON, *dict.fromkeys(known))
    for name in given:
        if name.lower() not in (*allowed, *IGNORED):
            # Not its value: it may be a password.
            raise InvalidArgument(f"{name} is not {what}; those are {', '.join(allowed)}")


def _word(given: Mapping[str, str], name: str, default: str, words: tuple[str, ...]) -> str:
    word = given.get(name, default).lower()
    if word not in words:
        raise invalid(name, given[name], f"one of {', '.join(words)}")
    return word


def _whole(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise invalid(name, text, f"a whole number between {least} and {most}")
    return argument.whole(name, int(text), least, most)


def _optional_name(given: Mapping[str, str], name: str, most: int) -> str | None:
    return argument.text(name, given[name], 1, most) if name in given else None
