"""Calls of a tenant, a role that is confined to some channels. Its messages have uuids instead of ids."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from lonnymq.calls.argument import instant, instant_of_us
from lonnymq.calls.draft import Draft
from lonnymq.calls.message import outcomes
from lonnymq.calls.statement import Call, Rows, array, call, from_json, function, in_utc
from lonnymq.model import (
    CancelOutcome,
    CreateOutcome,
    MessageStatus,
    PolicySource,
    Reason,
    RedriveOutcome,
    TenantAttempt,
    TenantChannel,
    TenantCreated,
    TenantDeadLetter,
    TenantMessage,
)

CREATE = function(
    "tenant_create",
    "outcome, message_uuid",
    p_channel="text",
    p_content="bytea",
    p_dequeue_at="bigint",
    p_delay_ms="bigint",
    p_key="text",
    p_max_attempts="integer",
    p_headers="jsonb",
)
CREATE_MANY = function(
    "tenant_create_many",
    "ordinal, outcome, message_uuid",
    p_channels="text[]",
    p_contents="bytea[]",
    p_dequeue_ats="bigint?[]",
    p_delays_ms="bigint?[]",
    p_keys="text[]",
    p_max_attempts="integer?[]",
    p_headers="text[]::jsonb[]",
)
CANCEL = function("tenant_cancel", "message_uuid, outcome", p_uuids="uuid[]")
CANCEL_KEY = function("tenant_cancel_key", "message_uuid, outcome", p_channel="text", p_key="text")
REDRIVE = function("tenant_redrive", "message_uuid, outcome", p_uuids="uuid[]")
REDRIVE_CHANNEL = function("tenant_redrive_channel", p_channel="text", p_limit="integer")
COLUMNS = (
    "message_uuid, channel, key, status, dequeue_at, created_at, attempts, max_attempts, error, leased_at,"
    " content_bytes, content"
)
SHOW = function("tenant_show", COLUMNS, p_uuids="uuid[]", p_preview_bytes="integer")
PEEK = function("tenant_peek", COLUMNS, p_channel="text", p_limit="integer", p_preview_bytes="integer")
CHANNELS = function(
    "tenant_channels",
    "channel, reason, waiting, leased, head_uuid, head_dequeue_at, head_created_at, next_release_at,"
    " last_release_at, max_concurrency, release_interval_ms, max_size, policy_sources",
)
DEAD_LIST = function(
    "tenant_dead_list",
    "message_uuid, channel, key, attempts, error, created_at, buried_at, content",
    p_channel="text",
    p_limit="integer",
    p_after="uuid",
)
HISTORY_LIST = function(
    "tenant_history_list",
    "message_uuid, channel, outcome, attempt, created_at, dequeue_at, leased_at, ended_at, error,"
    " content_bytes",
    p_channel="text",
    p_limit="integer",
    p_before="bigint",
)


def create(draft: Draft) -> Call[TenantCreated]:
    return call(CREATE, *draft, decode=lambda rows: _created(rows[0]), is_repeatable=draft.key is not None)


def create_many(drafts: Sequence[Draft]) -> Call[list[TenantCreated]]:
    channels, contents, dequeue_ats, delays_ms, keys, max_attempts, headers = zip(*drafts, strict=True)
    return call(
        CREATE_MANY,
        channels,
        contents,
        array(dequeue_ats),
        array(delays_ms),
        array(keys),
        array(max_attempts),
        array(headers),
        decode=lambda rows: [_created(row[1:]) for row in sorted(rows, key=lambda row: int(row[0]))],
        is_repeatable=None not in keys,
    )


def cancel(uuids: Sequence[UUID]) -> Call[list[CancelOutcome]]:
    return call(
        CANCEL,
        uuids,
        decode=outcomes(CancelOutcome),
        is_unsure=lambda answers: CancelOutcome.UNKNOWN in answers,
    )


def cancel_key(channel: str, key: str) -> Call[CancelOutcome]:
    return call(
        CANCEL_KEY,
        channel,
        key,
        decode=lambda rows: CancelOutcome(rows[0][1]),
        is_unsure=lambda answer: answer is CancelOutcome.UNKNOWN,
    )


def redrive(uuids: Sequence[UUID]) -> Call[list[RedriveOutcome]]:
    return call(
        REDRIVE,
        uuids,
        decode=outcomes(RedriveOutcome),
        is_unsure=lambda answers: RedriveOutcome.UNKNOWN in answers,
    )


def redrive_channel(channel: str, limit: int) -> Call[int]:
    return call(REDRIVE_CHANNEL, channel, limit, decode=lambda rows: int(rows[0][0]))


def show(uuid: UUID) -> Call[TenantMessage | None]:
    return call(SHOW, [uuid], None, decode=lambda rows: _message(rows[0]) if rows else None)


def peek(channel: str, limit: int, preview_bytes: int | None) -> Call[list[TenantMessage]]:
    return call(PEEK, channel, limit, preview_bytes, decode=lambda rows: [_message(row) for row in rows])


def channels() -> Call[list[TenantChannel]]:
    return call(CHANNELS, decode=lambda rows: [_channel(in_utc(row)) for row in rows])


def dead_letters(channel: str | None, limit: int, after: UUID | None) -> Call[list[TenantDeadLetter]]:
    return call(DEAD_LIST, channel, limit, None if after is None else str(after), decode=_dead_letters)


def history(channel: str, limit: int, before: int | None) -> Call[list[TenantAttempt]]:
    return call(HISTORY_LIST, channel, limit, before, decode=lambda rows: [_attempt(row) for row in rows])


def _uuid(value: Any) -> UUID:
    # Some drivers return text, others a type of their own.
    return UUID(str(value))


def _created(row: Sequence[Any]) -> TenantCreated:
    return TenantCreated(CreateOutcome(row[0]), None if row[1] is None else _uuid(row[1]))


def _message(row: tuple[Any, ...]) -> TenantMessage:
    uuid, channel, key, status, dequeue_at, created_at, attempts, max_attempts, error, leased_at, *content = (
        row
    )
    return TenantMessage(
        uuid=_uuid(uuid),
        channel=channel,
        key=key,
        status=MessageStatus(status),
        dequeue_at=dequeue_at,
        created_at=instant(created_at),
        attempts=attempts,
        max_attempts=max_attempts,
        error=error,
        leased_at=None if leased_at is None else instant_of_us(leased_at),
        content_bytes=content[0],
        content=content[1],
    )


def _channel(row: tuple[Any, ...]) -> TenantChannel:
    return TenantChannel(
        channel=row[0],
        reason=Reason(row[1]),
        waiting=int(row[2]),
        leased=int(row[3]),
        head_uuid=None if row[4] is None else _uuid(row[4]),
        head_dequeue_at=row[5],
        head_created_at=None if row[6] is None else instant(row[6]),
        next_release_at=row[7],
        last_release_at=row[8],
        max_concurrency=row[9],
        release_interval_ms=row[10],
        max_size=row[11],
        policy_sources={name: PolicySource(source) for name, source in from_json(row[12]).items()},
    )


def _dead_letters(rows: Rows) -> list[TenantDeadLetter]:
    return [
        TenantDeadLetter(
            uuid=_uuid(uuid),
            channel=channel,
            key=key,
            attempts=attempts,
            error=error,
            created_at=instant(created_at),
            buried_at=instant(buried_at),
            content=content,
        )
        for uuid, channel, key, attempts, error, created_at, buried_at, content in rows
    ]


def _attempt(row: tuple[Any, ...]) -> TenantAttempt:
    uuid, channel, outcome, attempt, created_at, dequeue_at, leased_at, ended_at, error, content_bytes = row
    return TenantAttempt(
        uuid=_uuid(uuid),
        channel=channel,
        outcome=outcome,
        attempt=attempt,
        created_at=instant(created_at),
        dequeue_at=dequeue_at,
        leased_at=None if leased_at is None else instant(leased_at),
        ended_at=instant(ended_at),
        error=error,
        content_bytes=content_bytes,
    )
