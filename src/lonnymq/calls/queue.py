"""The queue as a whole: settings, figures, checks and grants."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lonnymq.calls.argument import optional_whole
from lonnymq.calls.statement import Call, Rows, Statement, call, from_json, function, in_utc, nothing
from lonnymq.errors import InvalidArgument, invalid
from lonnymq.model import (
    DEFAULT_POLICY_FIELDS,
    ChannelPolicy,
    ExactCounts,
    HistoryMode,
    Horizon,
    Problem,
    QueueActivity,
    QueuePulse,
    QueueSettings,
    QueueStatus,
    TableFigures,
)

EVENT = function("queue_event")
HORIZON = function("queue_horizon", "oldest, newest")
SET = function("queue_set", p_settings="jsonb")
STATUS_COLUMNS = [field.name for field in fields(QueueStatus)]
STATUS = function("queue_status", ", ".join(STATUS_COLUMNS))
PULSE_COLUMNS = [field.name for field in fields(QueuePulse)]
PULSE = function("queue_pulse", ", ".join(PULSE_COLUMNS), p_channels="integer")
ACTIVITY = function("queue_activity", "created, leased, ended, at")
TABLES = function("queue_tables", "name, bytes, live_rows, dead_rows")
COUNT = function(
    "queue_count",
    "channels, waiting, leased, dead, unfolded_wakes, history_overflow, counted_at, age_s, took_ms",
    p_may_count="boolean",
)
CHECK = function("queue_check", "problem, channel, detail, is_repaired", p_repair="boolean")
# Every role may execute this, so it cannot abort a caller's transaction. It reads a comment and not a table,
# because reading a table can run code of its owner, such as the predicate of an index.
VERSION_COMMENT = Statement(
    "migration",
    "select pg_catalog.obj_description(c.oid, 'pg_class') from pg_catalog.pg_class c"
    " join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname = %t::text and c.relname = 'migration' and c.relkind = 'r'",
    ("text",),
)
# Every role may execute this, too. Without a queue it returns no row.
MAY_DEQUEUE = Statement(
    "privileges",
    "select current_user::text, pg_catalog.has_function_privilege(p.oid, 'execute') from pg_catalog.pg_proc p"
    " join pg_catalog.pg_namespace n on n.oid = p.pronamespace"
    " where n.nspname = %t::text and p.proname = 'message_dequeue'",
    ("text",),
)
LIMIT_TIME = Statement(
    "statement_timeout", "select pg_catalog.set_config('statement_timeout', %t::text, true)", ("text",)
)
GRANT = function(
    "queue_grant",
    p_role="text",
    p_kind="text",
    p_channels="text[]",
    p_prefix="text",
    p_max_channels="integer",
)
REVOKE = function("queue_revoke", p_role="text")


def may_dequeue(schema: str) -> Call[tuple[str, bool] | None]:
    """Return the session's role and whether it may dequeue; None if there is no queue."""

    def decode(rows: Rows) -> tuple[str, bool] | None:
        return (str(rows[0][0]), bool(rows[0][1])) if rows else None

    return call(MAY_DEQUEUE, schema, decode=decode)


def event() -> Call[str]:
    return call(EVENT, decode=lambda rows: str(rows[0][0]))


def horizon() -> Call[Horizon]:
    return call(HORIZON, decode=lambda rows: Horizon(*rows[0]))


def set(settings: Mapping[str, Any]) -> Call[QueueSettings]:  # noqa: A001
    return call(SET, dict(settings), decode=_settings)


def default_policy(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Check the changes of the default policy; None removes a field."""
    if not isinstance(changes, Mapping):
        raise invalid("default_policy", changes, "a mapping of field names to values")
    for name, value in changes.items():
        field = DEFAULT_POLICY_FIELDS.get(name)
        if field is None:
            raise InvalidArgument(
                f"a default policy has no field {name!r}; use one of {', '.join(DEFAULT_POLICY_FIELDS)}"
            )
        optional_whole(name, value, field.low, field.high)
    return dict(changes)


def status() -> Call[QueueStatus]:
    return call(STATUS, decode=_status)


def pulse(channels: int) -> Call[QueuePulse]:
    return call(PULSE, channels, decode=_pulse)


def activity() -> Call[QueueActivity]:
    return call(ACTIVITY, decode=lambda rows: QueueActivity(*in_utc(rows[0])))


def tables() -> Call[list[TableFigures]]:
    return call(TABLES, decode=lambda rows: [TableFigures(*row) for row in rows])


def limit_time(timeout_ms: int) -> Call[None]:
    """Let no later statement of this transaction take longer."""
    return call(LIMIT_TIME, str(timeout_ms), decode=nothing)


def count(may_count: bool) -> Call[ExactCounts | None]:
    def decode(rows: Rows) -> ExactCounts | None:
        return None if rows[0][0] is None else ExactCounts(*in_utc(rows[0]))

    return call(COUNT, may_count, decode=decode)


def check(repair: bool) -> Call[list[Problem]]:
    return call(
        CHECK, repair, decode=lambda rows: [Problem(row[0], row[1], row[2], bool(row[3])) for row in rows]
    )


def version_comment(schema: str) -> Call[str | None]:
    """Read the comment in which install() and migrate() record the version."""
    return call(VERSION_COMMENT, schema, decode=lambda rows: rows[0][0] if rows else None)


def grant(
    role: str, kind: str, channels: Sequence[str] | None, prefix: str | None, max_channels: int | None
) -> Call[None]:
    return call(GRANT, role, kind, channels, prefix, max_channels, decode=nothing)


def revoke(role: str) -> Call[None]:
    return call(REVOKE, role, decode=nothing)


def _settings(rows: Rows) -> QueueSettings:
    settings = from_json(rows[0][0])
    default = {name: value for name, value in settings["default_policy"].items() if value is not None}
    return QueueSettings(
        HistoryMode(settings["history"]),
        int(settings["max_content_bytes"]),
        int(settings["quantum"]),
        ChannelPolicy(**default),
    )


def _status(rows: Rows) -> QueueStatus:
    # Sums come as decimals.
    kinds: dict[str, Any] = {"history": HistoryMode, "oldest_transaction": lambda interval: interval}
    figures = zip(STATUS_COLUMNS, rows[0], strict=True)
    return QueueStatus(**{name: kinds.get(name, int)(value) for name, value in figures})


def _pulse(rows: Rows) -> QueuePulse:
    figures = dict(zip(PULSE_COLUMNS, in_utc(rows[0]), strict=True))
    # Sums come as decimals.
    figures["demand"] = int(figures["demand"])
    figures["history"] = HistoryMode(figures["history"])
    return QueuePulse(**figures)
