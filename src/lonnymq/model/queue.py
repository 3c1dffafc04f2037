"""The queue as a whole: its settings, state, health and kinds of role."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from lonnymq.model.history import HistoryMode
from lonnymq.model.policy import ChannelPolicy


class RoleKind(StrEnum):
    PRODUCER = "producer"
    WORKER = "worker"
    OPERATOR = "operator"
    READER = "reader"
    TENANT = "tenant"


@dataclass(frozen=True)
class QueueSettings:
    history: HistoryMode
    max_content_bytes: int
    quantum: int
    """How many messages a channel of weight 1 gets in one turn."""
    default_policy: ChannelPolicy = field(default_factory=ChannelPolicy)
    """What applies to channels that have no value of their own."""


@dataclass(frozen=True)
class QueueStatus:
    channels: int
    waiting: int
    leased: int
    expired: int
    dead: int
    unfolded_wakes: int
    sleepers: int
    history: HistoryMode
    history_overflow: int
    oldest_transaction: timedelta | None
    version: int


@dataclass(frozen=True)
class ExactCounts:
    """Exact counts, as they were at `counted_at`, `age_s` ago; the last attempt took `took_ms`."""

    channels: int
    waiting: int
    leased: int
    dead: int
    unfolded_wakes: int
    history_overflow: int
    counted_at: datetime
    age_s: float
    took_ms: int


@dataclass(frozen=True)
class QueueActivity:
    """Messages created, leases taken and leases ended since PostgreSQL began to count; read at `at`."""

    created: int
    leased: int
    ended: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class QueuePulse:
    """The figures to watch a queue by, read at `at` at a cost that does not depend on the queue's size.

    `demand` is how many messages workers could get now, within caps and rate limits, and `turn_lag_s` how
    long the channel that waits longest has been due. If not `is_due_complete`, there are more channels that
    are due than were looked at. At most 1,000 expired leases and sleepers are counted.

    If not `is_exact`, the tables are large, and `channels` to `history_overflow` are PostgreSQL's estimates.
    `*_total` only grow, until the server crashes or its statistics are reset.
    """

    at: datetime
    due_channels: int
    demand: int
    is_due_complete: bool
    turn_lag_s: float
    first_due_at: datetime | None
    first_expiry_at: datetime | None
    expired: int
    sleepers: int
    channels: int
    waiting: int
    scheduled: int
    leased: int
    dead: int
    unfolded_wakes: int
    history_overflow: int
    is_exact: bool
    created_total: int
    leased_total: int
    ended_total: int
    history: HistoryMode
    oldest_transaction_s: float | None
    version: int


@dataclass(frozen=True)
class TableFigures:
    """A table of the queue: its size on disk with indexes, and its rows as last counted by PostgreSQL."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int


@dataclass(frozen=True)
class Problem:
    """A broken invariant, as `queue_check()` reports it."""

    problem: str
    channel: str | None
    detail: str
    is_repaired: bool


@dataclass(frozen=True)
class Horizon:
    """All transactions below `oldest` have ended; none from `newest` on has begun."""

    oldest: int
    newest: int
