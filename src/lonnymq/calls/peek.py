"""Looks at live messages without leasing them."""

from typing import Any

from lonnymq.calls.argument import instant, instant_of_us
from lonnymq.calls.headers import decode_headers
from lonnymq.calls.page import page_of
from lonnymq.calls.statement import Call, Rows, Statement, call, function
from lonnymq.model import (
    LiveMessage,
    MessageStatus,
    Page,
    PageCursor,
    RecordedAttempt,
    RecordedAttempts,
)

COLUMNS = (
    "message_id, channel, key, status, dequeue_at, created_at, attempts, max_attempts, suspicion,"
    " error, worker, leased_at, unlock_at, content_bytes, content, state, headers::text"
)
PEEK = function(
    "message_peek",
    COLUMNS,
    p_channel="text",
    p_limit="integer",
    p_is_leased="boolean",
    p_preview_bytes="integer",
)
SHOW = function("message_show", COLUMNS, p_ids="bigint[]", p_preview_bytes="integer")

# Without contents, for roles that may not see them.
OUTLINE_COLUMNS = COLUMNS.removesuffix(", content, state, headers::text")
OUTLINE = function("message_outline", OUTLINE_COLUMNS, p_ids="bigint[]")
PEEK_OUTLINE = function(
    "message_peek_outline", OUTLINE_COLUMNS, p_channel="text", p_limit="integer", p_is_leased="boolean"
)
# What stands for contents, state and headers.
NO_CONTENTS = (b"", None, None)

PAGE_CALL = (
    "{schema}.message_page(p_channel => %t::text, p_status => %t::text, p_before_id => %t::bigint,"
    " p_before_at => %t::bigint, p_limit => %t::integer, p_prefix => %t::text) p"
)
PAGE_TYPES = ("text", "text", "bigint", "bigint", "integer", "text")
PAGE = Statement(
    "message_page_show",
    f"select p.next_id, p.next_at, {', '.join(f's.{name}' for name in COLUMNS.split(', '))}"
    f" from {PAGE_CALL} left join lateral {{schema}}.message_show(p.ids, %t::integer) s on true",
    (*PAGE_TYPES, "integer"),
)
PAGE_OUTLINE = Statement(
    "message_page_outline",
    f"select p.next_id, p.next_at, {', '.join(f's.{name}' for name in OUTLINE_COLUMNS.split(', '))}"
    f" from {PAGE_CALL} left join lateral {{schema}}.message_outline(p.ids) s on true",
    PAGE_TYPES,
)
ATTEMPTS = function(
    "message_attempts",
    "searched_from, is_complete, outcome, attempt, leased_at, ended_at, worker, error",
    p_id="bigint",
    p_rows="integer",
    p_limit="integer",
)


def page(
    channel: str | None,
    status: str | None,
    before: PageCursor | None,
    limit: int,
    preview_bytes: int | None,
    prefix: str | None,
) -> Call[Page[LiveMessage]]:
    id_, at = (before.id, before.at) if before else (None, None)
    values = (channel, status, id_, at, limit, prefix)
    if preview_bytes == 0:
        return call(
            PAGE_OUTLINE,
            *values,
            decode=lambda rows: page_of(rows, lambda row: _message((*row, *NO_CONTENTS))),
        )
    return call(PAGE, *values, preview_bytes, decode=lambda rows: page_of(rows, _message))


def peek(
    channel: str | None, limit: int, is_leased: bool, preview_bytes: int | None
) -> Call[list[LiveMessage]]:
    if preview_bytes == 0:
        return call(
            PEEK_OUTLINE,
            channel,
            limit,
            is_leased,
            decode=lambda rows: [_message((*row, *NO_CONTENTS)) for row in rows],
        )
    return call(PEEK, channel, limit, is_leased, preview_bytes, decode=_messages)


def show(id_: int, preview_bytes: int | None) -> Call[LiveMessage | None]:
    if preview_bytes == 0:
        return call(OUTLINE, [id_], decode=lambda rows: _message((*rows[0], *NO_CONTENTS)) if rows else None)
    return call(SHOW, [id_], preview_bytes, decode=lambda rows: _message(rows[0]) if rows else None)


def attempts(id_: int, rows: int, limit: int) -> Call[RecordedAttempts]:
    return call(ATTEMPTS, id_, rows, limit, decode=_attempts)


def _attempts(rows: Rows) -> RecordedAttempts:
    searched_from, is_complete = rows[0][:2]
    found = [
        RecordedAttempt(
            outcome=outcome,
            attempt=attempt,
            leased_at=None if leased_at is None else instant(leased_at),
            ended_at=instant(ended_at),
            worker=worker,
            error=error,
        )
        for _, _, outcome, attempt, leased_at, ended_at, worker, error in rows
        if outcome is not None
    ]
    return RecordedAttempts(
        attempts=found,
        searched_from=None if searched_from is None else instant(searched_from),
        is_complete=is_complete,
    )


def _messages(rows: Rows) -> list[LiveMessage]:
    return [_message(row) for row in rows]


def _message(row: tuple[Any, ...]) -> LiveMessage:
    leased_at, unlock_at = row[11:13]
    return LiveMessage(
        id=row[0],
        channel=row[1],
        key=row[2],
        status=MessageStatus(row[3]),
        dequeue_at=row[4],
        created_at=instant(row[5]),
        attempts=row[6],
        max_attempts=row[7],
        suspicion=row[8],
        error=row[9],
        worker=row[10],
        leased_at=None if leased_at is None else instant_of_us(leased_at),
        unlock_at=None if unlock_at is None else instant_of_us(unlock_at),
        content_bytes=row[13],
        content=row[14],
        state_content=row[15],
        headers=decode_headers(row[16]),
    )
