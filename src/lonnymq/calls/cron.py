"""Crons: set, listed, and ticked by the first worker that sees them due."""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lonnymq.calls import argument
from lonnymq.calls.codec import Codec, encode_payload
from lonnymq.calls.headers import encode_headers
from lonnymq.calls.statement import Call, Rows, call, function, in_utc
from lonnymq.cron import schedule
from lonnymq.errors import invalid
from lonnymq.model import (
    CatchUp,
    Cron,
    CronDeleteOutcome,
    CronSetOutcome,
    CronStatus,
    CronTickOutcome,
    DueCron,
    DueCrons,
    Ticks,
)

HUNDRED_YEARS = timedelta(days=36525)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)

SET = function(
    "cron_set",
    p_name="text",
    p_expression="text",
    p_channel="text",
    p_content="bytea",
    p_timezone="text",
    p_catch_up="text",
    p_max_attempts="integer",
    p_is_declared="boolean",
    p_mark_at="timestamptz",
    p_headers="jsonb",
)
DUE = function(
    "cron_due",
    "now_at, wait_ms, name, expression, timezone, catch_up, mark_at, content_bytes",
    p_names="text[]",
    p_limit="integer",
    p_now="timestamptz",
)
TICK = function(
    "cron_tick",
    "outcome, created",
    p_name="text",
    p_mark_at="timestamptz",
    p_until_at="timestamptz",
    p_ticks="timestamptz[]",
    p_next_at="timestamptz",
)
PAUSE = function("cron_pause", p_name="text")
RESUME = function("cron_resume", p_name="text")
DELETE = function("cron_delete", p_name="text")
LIST = function(
    "cron_list",
    "name, expression, timezone, channel, catch_up, max_attempts, is_declared, is_paused, mark_at, next_at,"
    " last_at, created_at",
    p_limit="integer",
    p_after="text",
)

OVERDUE = function("cron_overdue", "name, overdue_s", p_limit="integer")


def set(  # noqa: A001
    cron: Cron, codec: Codec, is_declared: bool, after: datetime | None
) -> Call[CronSetOutcome]:
    if not isinstance(cron, Cron):
        raise invalid("cron", cron, "a Cron")
    schedule.require_valid(cron.expression, cron.timezone)
    return call(
        SET,
        cron_name(cron.name),
        cron.expression,
        argument.channel(cron.channel),
        encode_payload("payload", cron.payload, codec),
        cron.timezone,
        argument.enum_value("catch_up", cron.catch_up, CatchUp),
        argument.optional_whole("max_attempts", cron.max_attempts, 1, argument.MAX_INTEGER),
        is_declared,
        instant("after", after, latest=datetime.now(UTC) + HUNDRED_YEARS),
        encode_headers(cron.headers),
        decode=_set,
    )


def due(names: Sequence[str], limit: int, now: datetime | None) -> Call[DueCrons]:
    found = argument.items("names", names, "a sequence of names of crons")
    return call(DUE, [cron_name(one) for one in found], limit, instant("now", now), decode=_due)


def tick(due: DueCron, ticks: Ticks) -> Call[CronTickOutcome]:
    """Decide ticks. Safe to repeat: a retry finds that the first attempt has moved the mark."""
    if not isinstance(due, DueCron):
        raise invalid("due", due, "a DueCron")
    if not isinstance(ticks, Ticks):
        raise invalid("ticks", ticks, "Ticks")
    return call(
        TICK,
        due.name,
        due.mark_at,
        ticks.until_at,
        ticks.ticks,
        ticks.next_at,
        decode=lambda rows: CronTickOutcome(rows[0][0]),
    )


def pause(name: str) -> Call[CronSetOutcome]:
    return call(PAUSE, cron_name(name), decode=_set)


def resume(name: str) -> Call[CronSetOutcome]:
    return call(RESUME, cron_name(name), decode=_set)


def delete(name: str) -> Call[CronDeleteOutcome]:
    return call(
        DELETE,
        cron_name(name),
        decode=lambda rows: CronDeleteOutcome(rows[0][0]),
        is_unsure=lambda answer: answer is CronDeleteOutcome.UNKNOWN,
    )


def list(limit: int, after: str) -> Call[Sequence[CronStatus]]:  # noqa: A001
    return call(LIST, limit, after, decode=_statuses)


def overdue(limit: int) -> Call[Mapping[str, float]]:
    """Return since how many seconds crons have been overdue, the most overdue ones first; 0: not at all."""
    return call(OVERDUE, limit, decode=dict)


def cron_name(value: Any) -> str:
    """Return the name of a cron. It is shorter than a key, because the key of a tick contains it."""
    name = argument.text("name", value, 1, 200)
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise invalid("name", value, "1 to 200 characters without control characters")
    return name


def instant(argument_: str, value: Any, latest: datetime = LATEST) -> datetime | None:
    """Return an instant that the database accepts, too."""
    if value is None:
        return None
    argument.epoch_ms(argument_, value)
    if not argument.EPOCH <= value <= latest:
        raise invalid(argument_, value.isoformat(), f"between 1970 and {latest.year}")
    found: datetime = value
    return found


def _set(rows: Rows) -> CronSetOutcome:
    return CronSetOutcome(rows[0][0])


def _due(rows: Rows) -> DueCrons:
    crons = tuple(
        DueCron(name, expression, timezone, CatchUp(catch_up), mark_at, now_at, content_bytes)
        for now_at, _, name, expression, timezone, catch_up, mark_at, content_bytes in map(in_utc, rows)
        if name is not None
    )
    return DueCrons(crons, rows[0][1])


def _statuses(rows: Rows) -> Sequence[CronStatus]:
    return [
        CronStatus(
            name=row[0],
            expression=row[1],
            timezone=row[2],
            channel=row[3],
            catch_up=CatchUp(row[4]),
            max_attempts=row[5],
            is_declared=row[6],
            is_paused=row[7],
            mark_at=row[8],
            next_at=row[9],
            last_at=row[10],
            created_at=row[11],
        )
        for row in map(in_utc, rows)
    ]
