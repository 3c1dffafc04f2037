"""Claims: messages that are leased, processed and completed together."""

from collections.abc import Sequence
from typing import Any

from lonnymq.calls.statement import Call, Rows, call, function
from lonnymq.model import Claim

BACKLOG = function("claim_backlog")
TAKE = function(
    "claim_take",
    "claim, messages, wait_ms",
    p_prev="uuid",
    p_consumer="text",
    p_is_alone="boolean",
    p_limit="integer",
    p_lease_ms="bigint",
)
MESSAGES = function("claim_messages", "message_id, token", p_claim="uuid", p_lease_ms="bigint")
HEARTBEAT = function("claim_heartbeat", "held, lost", p_claim="uuid", p_lease_ms="bigint")
READ = function(
    "claim_read",
    "message_id, outcome, channel, attempt, key, dequeue_at, created_at, leased_at, content, state,"
    " headers::text",
    p_ids="bigint[]",
    p_tokens="bigint[]",
)
COMPLETE = function("claim_complete", "outcome, lost", p_claim="uuid")


def backlog() -> Call[int]:
    return call(BACKLOG, decode=lambda rows: int(rows[0][0]))


def take(prev: str | None, consumer: str, is_alone: bool, limit: int, lease_ms: int) -> Call[Claim]:
    """After a lost connection, a retry finds the claim of the first attempt, unless `prev` is None."""

    def decode(rows: Rows) -> Claim:
        claim, messages, wait_ms = rows[0]
        return Claim(None if claim is None else str(claim), messages, wait_ms)

    return call(TAKE, prev, consumer, is_alone, limit, lease_ms, decode=decode)


def messages(claim: str, lease_ms: int) -> Call[list[tuple[int, int]]]:
    return call(MESSAGES, claim, lease_ms, decode=lambda rows: [(row[0], row[1]) for row in rows])


def heartbeat(claim: str, lease_ms: int) -> Call[tuple[int, int]]:
    return call(HEARTBEAT, claim, lease_ms, decode=lambda rows: (rows[0][0], rows[0][1]))


def read(ids: Sequence[int], tokens: Sequence[int]) -> Call[list[tuple[Any, ...]]]:
    return call(READ, ids, tokens, decode=lambda rows: rows)


def complete(claim: str) -> Call[tuple[str, int]]:
    """Return "done" or "busy", and how many leases were lost."""
    return call(COMPLETE, claim, decode=lambda rows: (rows[0][0], rows[0][1]))
