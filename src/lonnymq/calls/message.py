"""Calls that create, dequeue, read and cancel messages; calls/acknowledge.py ends their attempts."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from lonnymq.calls.draft import Draft
from lonnymq.calls.statement import Call, Rows, array, call, function
from lonnymq.model import (
    CancelOutcome,
    Content,
    Created,
    CreateOutcome,
    Dequeued,
    DequeueOutcome,
    Published,
    PublishOutcome,
    RunNowOutcome,
)
from lonnymq.model.lease import Leased, construct

Outcome = TypeVar("Outcome", bound=StrEnum)

CREATE = function(
    "message_create",
    "outcome, message_id",
    p_channel="text",
    p_content="bytea",
    p_dequeue_at="bigint",
    p_delay_ms="bigint",
    p_key="text",
    p_max_attempts="integer",
    p_headers="jsonb",
)
CREATE_MANY = function(
    "message_create_many",
    "ordinal, outcome, message_id",
    p_channels="text[]",
    p_contents="bytea[]",
    p_dequeue_ats="bigint?[]",
    p_delays_ms="bigint?[]",
    p_keys="text[]",
    p_max_attempts="integer?[]",
    p_headers="text[]::jsonb[]",
)
PUBLISH = function(
    "message_publish",
    "outcome, created, duplicates",
    p_publication="text",
    p_parts="uuid[]",
    p_counts="bigint[]",
)
DEQUEUE = function(
    "message_dequeue",
    "outcome, wait_ms, unread_bytes, message_id, channel, token, attempt, max_attempts, suspicion,"
    " dequeue_at, created_at, leased_at, unlock_at, key, content, state, headers::text",
    p_limit="integer",
    p_lease_ms="bigint",
    p_worker="text",
    p_is_durable="boolean",
    p_is_shared="boolean",
)
READ = function(
    "message_read", "message_id, key, content, state, headers::text", p_ids="bigint[]", p_tokens="bigint[]"
)
CANCEL = function("message_cancel", "message_id, outcome", p_ids="bigint[]")
RUN_NOW = function("message_run_now", "message_id, outcome", p_ids="bigint[]")
CANCEL_KEY = function("message_cancel_key", "message_id, outcome", p_channel="text", p_key="text")


def create(draft: Draft) -> Call[Created]:
    """Create a message. A key makes this safe to repeat: a retry finds the message of the first attempt."""
    return call(CREATE, *draft, decode=lambda rows: _created(rows[0]), is_repeatable=draft.key is not None)


def create_many(drafts: Sequence[Draft]) -> Call[list[Created]]:
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
        decode=lambda rows: [_created(row[1:]) for row in sorted(rows)],
        is_repeatable=None not in keys,
    )


def publish(publication: str, part: str, count: int) -> Call[Published]:
    def decode(rows: Rows) -> Published:
        outcome, created, duplicates = rows[0]
        return Published(PublishOutcome(outcome), created, duplicates, publication)

    return call(PUBLISH, publication, [part], [count], decode=decode)


def dequeue(
    limit: int,
    lease_ms: int,
    worker: str | None,
    is_durable: bool,
    is_shared: bool,
    kind: type[Leased],
    more: Mapping[str, Any],
) -> Call[Dequeued[Leased]]:
    """Lease messages. Safe to repeat: a message whose lease is lost with the connection is delivered again.

    `is_shared`: one process handles several messages at once. They are instances of `kind`, with the fields
    `more`.
    """

    def decode(rows: Rows) -> Dequeued[Leased]:
        if len(rows) == 1 and rows[0][3] is None:
            return Dequeued(DequeueOutcome(rows[0][0]), rows[0][1])
        leases = tuple([construct(kind, row[3:], more) for row in rows])
        unread = {row[3]: row[2] for row in rows if row[2] is not None}
        return Dequeued(DequeueOutcome.LEASED, 0, leases, unread)

    return call(DEQUEUE, limit, lease_ms, worker, is_durable, is_shared, decode=decode)


def read(ids: Sequence[int], tokens: Sequence[int]) -> Call[dict[int, Content]]:
    return call(READ, ids, tokens, decode=lambda rows: {row[0]: Content(*row[1:]) for row in rows})


def cancel(ids: Sequence[int]) -> Call[list[CancelOutcome]]:
    return call(
        CANCEL,
        ids,
        decode=outcomes(CancelOutcome),
        is_unsure=lambda answers: CancelOutcome.UNKNOWN in answers,
    )


def run_now(ids: Sequence[int]) -> Call[list[RunNowOutcome]]:
    return call(RUN_NOW, ids, decode=outcomes(RunNowOutcome))


def cancel_key(channel: str, key: str) -> Call[CancelOutcome]:
    return call(
        CANCEL_KEY,
        channel,
        key,
        decode=lambda rows: CancelOutcome(rows[0][1]),
        is_unsure=lambda answer: answer is CancelOutcome.UNKNOWN,
    )


def outcomes(kind: type[Outcome]) -> Callable[[Rows], list[Outcome]]:
    """Return the decoder of replies with one row per message, in the order given."""
    by_value = {member.value: member for member in kind}
    return lambda rows: [by_value[row[1]] for row in rows]


def _created(row: Sequence[Any]) -> Created:
    return Created(CreateOutcome(row[0]), row[1])
