"""Frozen values: what goes in, what comes out, and every outcome an operation can have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, overload

Item = TypeVar("Item")


class CreateOutcome(StrEnum):
    CREATED = "created"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"


class DequeueOutcome(StrEnum):
    """EMPTY: nothing is due. BUSY: others hold what is due, ask again soon."""

    LEASED = "leased"
    EMPTY = "empty"
    BUSY = "busy"


class CompleteOutcome(StrEnum):
    COMPLETED = "completed"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class DeferOutcome(StrEnum):
    DEFERRED = "deferred"
    BURIED = "buried"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class BuryOutcome(StrEnum):
    BURIED = "buried"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class GiveBackOutcome(StrEnum):
    GIVEN_BACK = "given_back"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class HeartbeatOutcome(StrEnum):
    EXTENDED = "extended"
    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"
    BUSY = "busy"


class CancelOutcome(StrEnum):
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    BUSY = "busy"


class RedriveOutcome(StrEnum):
    """DUPLICATE: its key is live again, so it stays dead."""

    REDRIVEN = "redriven"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    BUSY = "busy"


class PurgeOutcome(StrEnum):
    PURGED = "purged"
    UNKNOWN = "unknown"
    BUSY = "busy"


class ChannelSetOutcome(StrEnum):
    SET = "set"
    BUSY = "busy"


class ChannelDeleteOutcome(StrEnum):
    DELETED = "deleted"
    NOT_EMPTY = "not_empty"
    UNKNOWN = "unknown"
    BUSY = "busy"


class CronSetOutcome(StrEnum):
    """UNCHANGED: it was so already."""

    SET = "set"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"
    BUSY = "busy"


class CronDeleteOutcome(StrEnum):
    DELETED = "deleted"
    UNKNOWN = "unknown"
    BUSY = "busy"


class CronTickOutcome(StrEnum):
    """STALE: another worker was first, or the cron is paused, changed or gone."""

    TICKED = "ticked"
    STALE = "stale"
    BUSY = "busy"


class CatchUp(StrEnum):
    """What becomes of ticks that nobody was there for: each is created late, only the latest, or none."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


class PublishOutcome(StrEnum):
    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already_published"


class Reason(StrEnum):
    """Why a channel's next message is not being worked."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    PAUSED = "paused"
    CAPPED = "capped"
    THROTTLED = "throttled"
    SCHEDULED = "scheduled"
    READY = "ready"


class MessageStatus(StrEnum):
    """SCHEDULED: it waits, and its time has not come."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"


class HistoryMode(StrEnum):
    OFF = "off"
    METADATA = "metadata"
    FULL = "full"


class RoleKind(StrEnum):
    PRODUCER = "producer"
    WORKER = "worker"
    OPERATOR = "operator"
    READER = "reader"


@dataclass(frozen=True, kw_only=True)
class NewMessage:
    """A message to be; at most one of `at`, `delay` (seconds if a number) and `priority` (higher first)."""

    channel: str
    payload: Any
    at: datetime | None = None
    delay: timedelta | float | None = None
    priority: int | None = None
    key: str | None = None
    max_attempts: int | None = None


@dataclass(frozen=True)
class Created:
    """`id` is the first message's if this is a duplicate, and None if the channel was full."""

    outcome: CreateOutcome
    id: int | None


@dataclass(frozen=True)
class Published:
    """The result of a bulk load; `duplicates` had a key that was live."""

    outcome: PublishOutcome
    created: int
    duplicates: int
    publication: str


class Lease(Protocol):
    """What an acknowledgement needs of a message: which one, and the proof that it is still ours."""

    @property
    def id(self) -> int: ...
    @property
    def token(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class LeasedMessage:
    """One attempt at a message; `token` is the fence. `dequeue_at` is in ms, negative if prioritised."""

    id: int
    channel: str
    token: int
    attempt: int
    max_attempts: int | None
    dequeue_at: int
    created_at: datetime
    leased_at: datetime
    unlock_at: datetime
    key: str | None
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True)
class Content:
    """What a reply leaves out if it would grow too large."""

    key: str | None
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True)
class Dequeued:
    """The reply to one dequeue; `unread` are ids, with their bytes, whose content was too large for it."""

    outcome: DequeueOutcome
    wait_ms: int
    leases: tuple[LeasedMessage, ...] = ()
    unread: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch(Sequence[Item], Generic[Item]):
    """The messages of one dequeue. If there are none, `wait_ms` is when to ask again at the latest."""

    messages: tuple[Item, ...]
    outcome: DequeueOutcome
    wait_ms: int = 0

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.messages)


@dataclass(frozen=True)
class DeadLetter:
    id: int
    channel: str
    key: str | None
    attempts: int
    error: str | None
    created_at: datetime
    buried_at: datetime
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True, kw_only=True)
class LiveMessage:
    """A live message, looked at from outside: no token, so nothing can be acknowledged with it.

    A preview holds only the beginning of the content; `content_bytes` is its whole length.
    """

    id: int
    channel: str
    key: str | None
    status: MessageStatus
    dequeue_at: int
    created_at: datetime
    attempts: int
    max_attempts: int | None
    error: str | None
    worker: str | None
    leased_at: datetime | None
    unlock_at: datetime | None
    content_bytes: int
    content: bytes
    state_content: bytes | None


@dataclass(frozen=True, kw_only=True)
class ChannelPolicy:
    """What a channel is allowed; None means no limit."""

    max_concurrency: int | None = None
    release_interval_ms: int | None = None
    release_burst: int = 1
    weight: int = 1
    max_size: int | None = None
    max_attempts: int | None = None
    is_paused: bool = False


@dataclass(frozen=True, kw_only=True)
class ChannelStatus:
    """A channel now; `head_*` is its next message, `reason` is why that one waits."""

    channel: str
    policy: ChannelPolicy
    reason: Reason
    waiting: int
    leased: int
    head_id: int | None
    head_dequeue_at: int | None
    head_created_at: datetime | None
    next_release_at: datetime | None
    last_release_at: datetime | None
    created_at: datetime | None


@dataclass(frozen=True)
class Explanation:
    """Why a channel waits, in a word (`reason`) and in a sentence (`detail`)."""

    reason: Reason
    detail: str
    waiting: int | None
    leased: int | None
    max_concurrency: int | None
    release_interval_ms: int | None
    next_release_at: datetime | None
    head_id: int | None
    head_at: datetime | None


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
    """Messages created, leases taken and leases ended since PostgreSQL began to count."""

    created: int
    leased: int
    ended: int
    at: datetime


@dataclass(frozen=True)
class QueueSettings:
    history: HistoryMode
    max_content_bytes: int


@dataclass(frozen=True)
class Problem:
    """A broken invariant, as the queue's own check reports it."""

    problem: str
    channel: str | None
    detail: str
    is_repaired: bool


@dataclass(frozen=True)
class Horizon:
    """Transactions below `oldest` have ended, those from `newest` on have not begun."""

    oldest: int
    newest: int


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A message to be created at every tick of a cron expression."""

    name: str
    expression: str
    channel: str
    payload: Any
    timezone: str = "UTC"
    catch_up: CatchUp = CatchUp.LATEST
    max_attempts: int | None = None


@dataclass(frozen=True, kw_only=True)
class CronStatus:
    """A cron as it is; ticks up to `mark_at` are decided, `next_at` is None until a worker computes it."""

    name: str
    expression: str
    timezone: str
    channel: str
    catch_up: CatchUp
    max_attempts: int | None
    is_declared: bool
    is_paused: bool
    mark_at: datetime
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class DueCron:
    """A cron whose ticks after `mark_at`, up to `now_at` of the database's clock, are to be decided."""

    name: str
    expression: str
    timezone: str
    catch_up: CatchUp
    mark_at: datetime
    now_at: datetime


@dataclass(frozen=True)
class DueCrons:
    """Those that are due; if there are none, `wait_ms` is until the next one is (None: there is none)."""

    crons: tuple[DueCron, ...]
    wait_ms: int | None


@dataclass(frozen=True)
class Ticks:
    """What to decide for a cron: a message for each of `ticks`, none for others up to `until_at`."""

    ticks: tuple[datetime, ...]
    until_at: datetime
    next_at: datetime


@dataclass(frozen=True)
class HistoryPartition:
    """One day of history (UTC). A prune that was cut off leaves it detaching, or detached."""

    name: str
    until_ms: int
    # By the database's clock.
    is_over: bool
    is_attached: bool
    is_detaching: bool


@dataclass(frozen=True)
class HistoryReader:
    """Who follows history; `behind` counts rows it is not done with, to 1,000,000; `horizon` bounds all."""

    name: str
    done_xid: int
    done_id: int
    followed_at: datetime
    behind: int
    horizon: int


@dataclass(frozen=True, order=True)
class HistoryPosition:
    """After a row of history, in the order of transactions."""

    xid: int
    id: int


@dataclass(frozen=True)
class HistorySlice:
    """Rows up to `end`, after the slice before."""

    end: HistoryPosition
    rows: int


@dataclass(frozen=True)
class Claim:
    """Messages leased together; `id` is None if there were none, and `wait_ms` says when to ask again."""

    id: str | None
    messages: int
    wait_ms: int
