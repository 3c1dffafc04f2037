"""The columns of each table, with their Spark types and SQL expressions. Does not import Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

from lonnymq.errors import invalid
from lonnymq.model import POLICY_FIELDS

# Spark's timestamps cover the years 1 to 9999; a dequeue_at may be any number.
EARLIEST_MS = -62_135_596_800_000
LATEST_MS = 253_402_300_799_999
# A dequeue_at of a frame outside these years is more likely a mistake, such as seconds for milliseconds, a
# spreadsheet's empty date, or a year with two digits. Before 1970 it would be a priority.
PLAUSIBLE_YEARS = (2000, 2199)
FIRST_PLAUSIBLE_MS = 946_684_800_000
LAST_PLAUSIBLE_MS = 7_258_118_399_999


@dataclass(frozen=True)
class Column:
    """A column: its name, its Spark type, and the SQL expression that reads it."""

    name: str
    kind: str
    expression: str


def _plain(kind: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, f"h.{name}") for name in names)


def _milliseconds(*names: str) -> tuple[Column, ...]:
    """Milliseconds, read as microseconds: Arrow turns those into timestamps without converting values."""
    return tuple(Column(name, "timestamp", f"h.{name} * 1000") for name in names)


def _instants(*names: str) -> tuple[Column, ...]:
    return tuple(
        Column(name, "timestamp", f"(extract(epoch from h.{name}) * 1000000)::bigint") for name in names
    )


DEQUEUE_AT = Column(
    "dequeue_at", "timestamp", f"greatest(least(h.dequeue_at, {LATEST_MS}), {EARLIEST_MS}) * 1000"
)
HEADERS = Column("headers", "string", "h.headers::text")
HISTORY = (
    *_plain("bigint", "message_id"),
    *_plain("string", "channel", "outcome"),
    *_plain("int", "attempt"),
    *_milliseconds("created_at"),
    DEQUEUE_AT,
    *_milliseconds("leased_at", "ended_at"),
    *_plain("string", "worker", "error"),
    *_plain("int", "content_bytes"),
    *_plain("binary", "content", "state"),
    HEADERS,
    *_plain("bigint", "xid", "id"),
)
MESSAGE = (
    *_plain("bigint", "message_id"),
    *_plain("string", "channel", "status", "key"),
    DEQUEUE_AT,
    *_milliseconds("created_at"),
    *_plain("int", "attempts", "max_attempts"),
    *_plain("string", "worker"),
    *_milliseconds("leased_at"),
    *_plain("string", "error"),
    *_plain("int", "content_bytes"),
    *_plain("binary", "content", "state"),
    HEADERS,
)
# Spark calls SQL's integer "int"; bigint and boolean have the same names in both.
POLICY = tuple(
    Column(field.name, field.sql_type.replace("integer", "int"), f"h.{field.name}")
    for field in POLICY_FIELDS.values()
)
CHANNEL = (
    *_plain("string", "channel"),
    *POLICY,
    Column("waiting", "bigint", "h.waiting::bigint"),
    Column("leased", "bigint", "h.leased::bigint"),
    *_plain("string", "reason"),
    *_instants("next_release_at", "last_release_at", "created_at"),
)
LEASE = (
    *_plain("bigint", "message_id"),
    *_plain("string", "channel", "worker"),
    *_plain("int", "attempt"),
    *_instants("leased_at", "unlock_at"),
    *_plain("boolean", "is_expired", "is_cancelled"),
)
DEAD = (
    *_plain("bigint", "message_id"),
    *_plain("string", "channel", "key"),
    DEQUEUE_AT,
    *_milliseconds("created_at", "buried_at"),
    *_plain("int", "attempts", "max_attempts"),
    *_plain("string", "error"),
    *_plain("binary", "content", "state"),
    HEADERS,
)
TABLES = {"history": HISTORY, "message": MESSAGE, "channel": CHANNEL, "lease": LEASE, "dead": DEAD}
# The relations from which live tables are read.
RELATIONS = {
    "message": "message_status",
    "channel": "channel_status",
    "lease": "lease_status",
    "dead": "dead",
}
# The columns of mode consume: one leased message per row.
CONSUMED_MESSAGE = (
    *_plain("bigint", "message_id"),
    *_plain("string", "channel"),
    *_plain("int", "attempt"),
    *_plain("string", "key"),
    *_plain("timestamp", "dequeue_at", "created_at", "leased_at"),
    *_plain("binary", "content", "state"),
    HEADERS,
)


def choose(columns: Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns with these names, in this order; all columns if no names are given."""
    if not names:
        return tuple(columns)
    known = {column.name: column for column in columns}
    # Spark's users write column names in any case.
    folded = [name.lower() for name in names]
    unknown = [name for name in names if name.lower() not in known]
    if unknown or len(set(folded)) != len(folded):
        raise invalid("columns", ", ".join(unknown or names), f"some of {', '.join(known)}, each once")
    return tuple(known[name] for name in folded)


def ddl(columns: Sequence[Column]) -> str:
    return ", ".join(f"`{column.name}` {column.kind}" for column in columns)


def simple_string(columns: Sequence[Column]) -> str:
    """Return what Spark's `simpleString()` returns for a schema of these columns."""
    return f"struct<{','.join(f'{column.name}:{column.kind}' for column in columns)}>"


def select_list(columns: Sequence[Column]) -> str:
    return ", ".join(f'{column.expression} as "{column.name}"' for column in columns)
