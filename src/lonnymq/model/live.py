"""Live messages, as they are shown or cancelled from outside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class MessageStatus(StrEnum):
    """A live message is waiting, scheduled (it is not due yet) or leased; the others have ended.

    UNKNOWN: it never existed, or it has ended and nothing of it was kept.
    """

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"
    COMPLETED = "completed"
    BURIED = "buried"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def is_live(self) -> bool:
        return self in (MessageStatus.WAITING, MessageStatus.SCHEDULED, MessageStatus.LEASED)


class CancelOutcome(StrEnum):
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    BUSY = "busy"


class GroupOutcome(StrEnum):
    """WAITING: not all members have ended."""

    RELEASED = "released"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    BUSY = "busy"


class RunNowOutcome(StrEnum):
    """DUE: it is due now, or was already. LEASED: a worker has it."""

    DUE = "due"
    LEASED = "leased"
    UNKNOWN = "unknown"
    BUSY = "busy"


@dataclass(frozen=True, kw_only=True)
class LiveMessage:
    """A live message, for display. It has no token, so it cannot be acknowledged.

    A preview has only the beginning of the content; `content_bytes` is the full length.
    """

    id: int
    channel: str
    key: str | None
    status: MessageStatus
    dequeue_at: int
    created_at: datetime
    attempts: int
    max_attempts: int | None
    suspicion: int
    error: str | None
    worker: str | None
    leased_at: datetime | None
    unlock_at: datetime | None
    content_bytes: int
    content: bytes
    state_content: bytes | None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """How far an attempt is, from 0 to 1, and in which step."""

    fraction: float
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class MessageReport:
    """What has become of a message.

    `at` is when it is due, when it was leased, or when it ended; None if that is out of range, as for a
    priority. `attempt` and `worker` are those of the current or the last lease, as far as they are known.
    """

    id: int
    status: MessageStatus
    attempt: int | None
    worker: str | None
    at: datetime | None
    error: str | None
    result_content: bytes | None = field(repr=False)
    # What the current attempt reported, if it did.
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True)
class RecordedAttempt:
    """An attempt that has ended, as history recorded it.

    `leased_at` is None if the message was cancelled while it waited.
    """

    outcome: str
    attempt: int
    leased_at: datetime | None
    ended_at: datetime
    worker: str | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class RecordedAttempts:
    """Attempts of a message, the latest first.

    If not `is_complete`, history has earlier attempts, before `searched_from`, which were not searched.
    """

    attempts: list[RecordedAttempt]
    searched_from: datetime | None
    is_complete: bool
