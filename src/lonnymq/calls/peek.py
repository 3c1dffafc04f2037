"""Looks at live messages without leasing them."""

from typing import Any

from lonnymq.calls.argument import instant, instant_of_us
from lonnymq.calls.headers import decode_headers
from lonnymq.calls.page import page_of
from lonnymq.calls.statement import Call, Rows, Statement, call, function
from lonnymq.model import LiveMessage, MessageStatus, Page, PageCursor

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

PAGE = Statement(
    "message_page_show",
    f"select p.next_id, p.next_at, {', '.join(f's.{name}' for name in COLUMNS.split(', '))}"
    " from {schema}.message_page(p_channel => %t::text, p_status => %t::text, p_before_id => %t::bigint,"
    " p_before_at => %t::bigint, p_limit => %t::integer) p"
    " left join lateral {schema}.message_show(p.ids, %t::integer) s on true",
    ("text", "text", "bigint", "bigint", "integer", "integer"),
)


def page(
    channel: str | None, status: str | None, before: PageCursor | None, limit: int, preview_bytes: int | None
) -> Call[Page[LiveMessage]]:
    id_, at = (before.id, before.at) if before else (None, None)
    return call(
        PAGE, channel, status, id_, at, limit, preview_bytes, decode=lambda rows: page_of(rows, _message)
    )


def peek(
    channel: str | None, limit: int, is_leased: bool, preview_bytes: int | None
) -> Call[list[LiveMessage]]:
    return call(PEEK, channel, limit, is_leased, preview_bytes, decode=_messages)


def show(id_: int) -> Call[LiveMessage | None]:
    return call(SHOW, [id_], None, decode=lambda rows: _message(rows[0]) if rows else None)


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
