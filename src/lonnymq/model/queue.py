"""The queue as a whole: its settings, state, health and kinds of role."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from lonnymq.model.history import HistoryMode


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
class QueueActivity:
    """Messages created, leases taken and leases ended since PostgreSQL began to count; read at `at`."""

    created: int
    leased: int
    ended: int
    at: datetime


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
