"""Dead letters."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lonnymq.calls.argument import instant
from lonnymq.calls.headers import decode_headers
from lonnymq.calls.message import outcomes
from lonnymq.calls.page import page_of
from lonnymq.calls.statement import Call, Rows, Statement, call, function
from lonnymq.model import (
    DeadGroup,
    DeadGroups,
    DeadLetter,
    IdPage,
    Page,
    PageCursor,
    PurgeOutcome,
    RedriveOutcome,
)

# Defined here, because `list` is a function below.
RedriveOutcomes = list[RedriveOutcome]
PurgeOutcomes = list[PurgeOutcome]

LIST = function(
    "dead_list",
    "message_id, channel, key, attempts, error, created_at, buried_at, content, state, headers::text",
    p_channel="text",
    p_limit="integer",
    p_after="bigint",
)
PAGE_ARGUMENTS = (
    "p_channel => %t::text, p_error => %t::text, p_before_id => %t::bigint, p_before_at => %t::bigint,"
    " p_limit => %t::integer"
)
PAGE_TYPES = ("text", "text", "bigint", "bigint", "integer")
PAGE = Statement(
    "dead_page_show",
    "select p.next_id, p.next_at, s.message_id, s.channel, s.key, s.attempts, s.error, s.created_at,"
    " s.buried_at, s.content, s.state, s.content_bytes, s.headers::text"
    f" from {{schema}}.dead_page({PAGE_ARGUMENTS}) p"
    " left join lateral {schema}.dead_show(p.ids, %t::integer) s on true",
    (*PAGE_TYPES, "integer"),
)
OUTLINE_COLUMNS = "message_id, channel, key, attempts, error, created_at, buried_at, content_bytes"
# Without contents, for roles that may not see them.
PAGE_OUTLINE = Statement(
    "dead_page_outline",
    f"select p.next_id, p.next_at, {OUTLINE_COLUMNS} from {{schema}}.dead_page({PAGE_ARGUMENTS}) p"
    " left join lateral {schema}.dead_outline(p.ids) s on true",
    PAGE_TYPES,
)
OUTLINE = function("dead_outline", OUTLINE_COLUMNS, p_ids="bigint[]")
SHOW = function(
    "dead_show",
    "message_id, channel, key, attempts, error, created_at, buried_at, content, state, content_bytes,"
    " headers::text",
    p_ids="bigint[]",
    p_preview_bytes="integer",
)
IDS = Statement(
    "dead_page",
    f"select next_id, next_at, ids, read_at from {{schema}}.dead_page({PAGE_ARGUMENTS})",
    PAGE_TYPES,
)
GROUPS = function(
    "dead_groups",
    "error, letters, channels, first_at, last_at, last_id, is_complete",
    p_channel="text",
    p_limit="integer",
    p_letters="integer",
)
REDRIVE = function("dead_redrive", "message_id, outcome", p_ids="bigint[]", p_before="timestamptz")
REDRIVE_CHANNEL = function("dead_redrive_channel", p_channel="text", p_limit="integer")
PURGE = function("dead_purge", "message_id, outcome", p_ids="bigint[]", p_before="timestamptz")
PURGE_CHANNEL = function("dead_purge_channel", p_channel="text", p_limit="integer", p_before="timestamptz")


def list(channel: str | None, limit: int, after: int) -> Call[Sequence[DeadLetter]]:  # noqa: A001
    return call(LIST, channel, limit, after, decode=_letters)


def page(
    channel: str | None, error: str | None, before: PageCursor | None, limit: int, preview_bytes: int | None
) -> Call[Page[DeadLetter]]:
    id_, at = (before.id, before.at) if before else (None, None)
    if preview_bytes == 0:
        return call(
            PAGE_OUTLINE, channel, error, id_, at, limit, decode=lambda rows: page_of(rows, _outlined)
        )
    return call(
        PAGE, channel, error, id_, at, limit, preview_bytes, decode=lambda rows: page_of(rows, _letter)
    )


def show(id_: int, preview_bytes: int | None) -> Call[DeadLetter | None]:
    if preview_bytes == 0:
        return call(OUTLINE, [id_], decode=lambda rows: _outlined(rows[0]) if rows else None)
    return call(SHOW, [id_], preview_bytes, decode=lambda rows: _letter(rows[0]) if rows else None)


def ids(channel: str | None, error: str | None, before: PageCursor | None, limit: int) -> Call[IdPage]:
    def decode(rows: Rows) -> IdPage:
        next_id, next_at, found, at = rows[0]
        cursor = None if next_id is None else PageCursor(next_id, next_at)
        # Instants are compared in milliseconds.
        return IdPage(found, cursor, at.astimezone(UTC) + timedelta(milliseconds=1))

    id_, at = (before.id, before.at) if before else (None, None)
    return call(IDS, channel, error, id_, at, limit, decode=decode)


def groups(channel: str | None, limit: int, letters: int) -> Call[DeadGroups]:
    def decode(rows: Rows) -> DeadGroups:
        found = [
            DeadGroup(error, int(count), int(channels), instant(first_at), instant(last_at), last_id)
            for error, count, channels, first_at, last_at, last_id, _ in rows
        ]
        return DeadGroups(found, all(row[-1] for row in rows))

    return call(GROUPS, channel, limit, letters, decode=decode)


def redrive(ids: Sequence[int], before: datetime | None) -> Call[RedriveOutcomes]:
    return call(
        REDRIVE,
        ids,
        before,
        decode=outcomes(RedriveOutcome),
        is_unsure=lambda answers: RedriveOutcome.UNKNOWN in answers,
    )


def redrive_channel(channel: str, limit: int) -> Call[int]:
    return call(REDRIVE_CHANNEL, channel, limit, decode=lambda rows: int(rows[0][0]))


def purge(ids: Sequence[int], before: datetime | None) -> Call[PurgeOutcomes]:
    return call(
        PURGE,
        ids,
        before,
        decode=outcomes(PurgeOutcome),
        is_unsure=lambda answers: PurgeOutcome.UNKNOWN in answers,
    )


def purge_channel(channel: str, limit: int, before: datetime | None) -> Call[int]:
    return call(PURGE_CHANNEL, channel, limit, before, decode=lambda rows: int(rows[0][0]))


def _letters(rows: Rows) -> Sequence[DeadLetter]:
    return [_letter((*row[:9], len(row[7]), row[9])) for row in rows]


def _outlined(row: tuple[Any, ...]) -> DeadLetter:
    """Return a dead letter without content, state and headers."""
    return _letter((*row[:7], b"", None, row[7], None))


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    id_, channel, key, attempts, error, created_at, buried_at, content, state, content_bytes, headers = row
    return DeadLetter(
        id_,
        channel,
        key,
        attempts,
        error,
        instant(created_at),
        instant(buried_at),
        content,
        state,
        content_bytes,
        decode_headers(headers),
    )
