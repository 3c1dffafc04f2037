"""Dead letters."""

from collections.abc import Sequence
from datetime import datetime

from lonnymq.calls.argument import instant
from lonnymq.calls.headers import decode_headers
from lonnymq.calls.message import outcomes
from lonnymq.calls.statement import Call, Rows, call, function
from lonnymq.model import DeadLetter, PurgeOutcome, RedriveOutcome

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
REDRIVE = function("dead_redrive", "message_id, outcome", p_ids="bigint[]")
REDRIVE_CHANNEL = function("dead_redrive_channel", p_channel="text", p_limit="integer")
PURGE = function("dead_purge", "message_id, outcome", p_ids="bigint[]")
PURGE_CHANNEL = function("dead_purge_channel", p_channel="text", p_limit="integer", p_before="timestamptz")


def list(channel: str | None, limit: int, after: int) -> Call[Sequence[DeadLetter]]:  # noqa: A001
    return call(LIST, channel, limit, after, decode=_letters)


def redrive(ids: Sequence[int]) -> Call[RedriveOutcomes]:
    return call(
        REDRIVE,
        ids,
        decode=outcomes(RedriveOutcome),
        is_unsure=lambda answers: RedriveOutcome.UNKNOWN in answers,
    )


def redrive_channel(channel: str, limit: int) -> Call[int]:
    return call(REDRIVE_CHANNEL, channel, limit, decode=lambda rows: int(rows[0][0]))


def purge(ids: Sequence[int]) -> Call[PurgeOutcomes]:
    return call(
        PURGE,
        ids,
        decode=outcomes(PurgeOutcome),
        is_unsure=lambda answers: PurgeOutcome.UNKNOWN in answers,
    )


def purge_channel(channel: str, limit: int, before: datetime | None) -> Call[int]:
    return call(PURGE_CHANNEL, channel, limit, before, decode=lambda rows: int(rows[0][0]))


def _letters(rows: Rows) -> Sequence[DeadLetter]:
    return [
        DeadLetter(
            id_,
            channel,
            key,
            attempts,
            error,
            instant(created_at),
            instant(buried_at),
            content,
            state,
            decode_headers(headers),
        )
        for id_, channel, key, attempts, error, created_at, buried_at, content, state, headers in rows
    ]
