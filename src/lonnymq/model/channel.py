"""Channels, and why their messages wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lonnymq.model.policy import ChannelPolicy, PolicySource


class ChannelSetOutcome(StrEnum):
    SET = "set"
    BUSY = "busy"


class ChannelDeleteOutcome(StrEnum):
    DELETED = "deleted"
    NOT_EMPTY = "not_empty"
    UNKNOWN = "unknown"
    BUSY = "busy"


class Reason(StrEnum):
    """Why a channel's next message is not released."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    PAUSED = "paused"
    CAPPED = "capped"
    THROTTLED = "throttled"
    SCHEDULED = "scheduled"
    READY = "ready"


@dataclass(frozen=True, kw_only=True)
class ChannelStatus:
    """The current state of a channel; `head_*` is its next message, `reason` is why that message waits.

    `policy` is what applies to the channel, and `policy_sources` says of each field except `is_paused` where
    its value comes from.

    `ready_at` is since when it only waits for a worker, or for the channel's turn. `released` counts the
    messages that were ever leased, and `waited_ms` is how long they had waited, added up; the difference of
    two readings gives the rate, the share of service and the mean wait. If `is_waiting_partial`, `waiting`
    leaves out some messages that no dequeue has seen yet.
    """

    channel: str
    policy: ChannelPolicy
    policy_sources: Mapping[str, PolicySource]
    reason: Reason
    waiting: int
    is_waiting_partial: bool
    leased: int
    head_id: int | None
    head_dequeue_at: int | None
    head_created_at: datetime | None
    ready_at: datetime | None
    released: int
    waited_ms: int
    next_release_at: datetime | None
    last_release_at: datetime | None
    created_at: datetime | None


@dataclass(frozen=True)
class Explanation:
    """Why a channel's next message waits, as a code (`reason`) and as a sentence (`detail`).

    `head_*` is that message; `head_dequeue_at` is in milliseconds and may exceed the range of a datetime.
    """

    reason: Reason
    detail: str
    waiting: int | None
    leased: int | None
    max_concurrency: int | None
    release_interval_ms: int | None
    next_release_at: datetime | None
    head_id: int | None
    head_dequeue_at: int | None
