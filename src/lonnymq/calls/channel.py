"""Channels: their policy and their status."""

from collections.abc import Mapping, Sequence
from typing import Any

from lonnymq.calls.argument import instant, whole
from lonnymq.calls.statement import Call, Rows, Statement, call, from_json, function, in_utc
from lonnymq.errors import invalid
from lonnymq.model import (
    NONE,
    POLICY_FIELDS,
    ChannelDeleteOutcome,
    ChannelPolicy,
    ChannelSetOutcome,
    ChannelStatus,
    Explanation,
    PolicySource,
    Reason,
)

SET = function("channel_set", p_channel="text", p_policy="jsonb")
PAUSE = function("channel_pause", p_channel="text")
RESUME = function("channel_resume", p_channel="text")
DELETE = function("channel_delete", p_channel="text")
EXPLAIN = function(
    "channel_explain",
    "reason, detail, waiting, leased, max_concurrency, release_interval_ms, next_release_at, head_id,"
    " head_dequeue_at",
    p_channel="text",
)
COLUMNS = (
    "channel, reason, waiting, leased, head_id, head_dequeue_at, head_created_at, next_release_at,"
    " last_release_at, created_at, is_waiting_partial, ready_at, released, waited_ms, policy_sources,"
    f" {', '.join(POLICY_FIELDS)}"
)
STATUS = Statement(
    "channel_status",
    f"select {COLUMNS} from {{schema}}.channel_page(p_prefix => %t::text, p_limit => 1)"
    " where channel = %t::text",
    ("text", "text"),
)
PAGE = function("channel_page", COLUMNS, p_prefix="text", p_after="text", p_limit="integer")
BUSIEST = function("channel_busiest", COLUMNS, p_limit="integer")
OVERDUE = function("channel_overdue", COLUMNS, p_limit="integer")
LIST = function("channel_list", COLUMNS, p_channels="text[]")


def set(channel: str, changes: Mapping[str, Any]) -> Call[ChannelSetOutcome]:  # noqa: A001
    for name, value in changes.items():
        field = POLICY_FIELDS.get(name)
        if field is None:
            raise TypeError(f"a policy has no field {name!r}; use one of {', '.join(POLICY_FIELDS)}")
        if field.is_flag:
            if not isinstance(value, bool | None):
                raise invalid(name, value, "True, False or None")
        elif value is not None and not (field.can_be_lifted and value == NONE):
            whole(name, value, field.low, field.high)
    return call(SET, channel, dict(changes), decode=_set)


def changes(policy: ChannelPolicy) -> dict[str, Any]:
    """Return the changes that make a policy a channel's own, except what it leaves out."""
    if not isinstance(policy, ChannelPolicy):
        raise invalid("policy", policy, "a ChannelPolicy")
    return {
        name: None if value == POLICY_FIELDS[name].default else value for name, value in vars(policy).items()
    }


def pause(channel: str) -> Call[ChannelSetOutcome]:
    return call(PAUSE, channel, decode=_set)


def resume(channel: str) -> Call[ChannelSetOutcome]:
    return call(RESUME, channel, decode=_set)


def delete(channel: str) -> Call[ChannelDeleteOutcome]:
    return call(
        DELETE,
        channel,
        decode=lambda rows: ChannelDeleteOutcome(rows[0][0]),
        is_unsure=lambda answer: answer is ChannelDeleteOutcome.UNKNOWN,
    )


def explain(channel: str) -> Call[Explanation]:
    return call(EXPLAIN, channel, decode=lambda rows: Explanation(Reason(rows[0][0]), *in_utc(rows[0][1:])))


def status(channel: str) -> Call[ChannelStatus | None]:
    return call(STATUS, channel, channel, decode=lambda rows: _status(rows[0]) if rows else None)


def page(prefix: str, after: str, limit: int) -> Call[list[ChannelStatus]]:
    return call(PAGE, prefix, after, limit, decode=lambda rows: [_status(row) for row in rows])


def busiest(limit: int) -> Call[list[ChannelStatus]]:
    return call(BUSIEST, limit, decode=lambda rows: [_status(row) for row in rows])


def overdue(limit: int) -> Call[list[ChannelStatus]]:
    return call(OVERDUE, limit, decode=lambda rows: [_status(row) for row in rows])


def named(channels: Sequence[str]) -> Call[list[ChannelStatus]]:
    """Return those of these channels that exist."""
    return call(LIST, channels, decode=lambda rows: [_status(row) for row in rows])


def _set(rows: Rows) -> ChannelSetOutcome:
    return ChannelSetOutcome(rows[0][0])


def _status(row: tuple[Any, ...]) -> ChannelStatus:
    row = in_utc(row)
    return ChannelStatus(
        channel=row[0],
        reason=Reason(row[1]),
        waiting=int(row[2]),
        leased=int(row[3]),
        head_id=row[4],
        head_dequeue_at=row[5],
        head_created_at=None if row[6] is None else instant(row[6]),
        next_release_at=row[7],
        last_release_at=row[8],
        created_at=row[9],
        is_waiting_partial=bool(row[10]),
        ready_at=row[11],
        released=row[12],
        waited_ms=row[13],
        policy=ChannelPolicy(**dict(zip(POLICY_FIELDS, row[15:], strict=True))),
        policy_sources={name: PolicySource(source) for name, source in from_json(row[14]).items()},
    )
