"""Somebody looks at it, or cancels it, while it is live."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MessageStatus(StrEnum):
    """SCHEDULED: it waits, and its time has not come."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"


class CancelOutcome(StrEnum):
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    BUSY = "busy"


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
    suspicion: int
    error: str | None
    worker: str | None
    leased_at: datetime | None
    unlock_at: datetime | None
    content_bytes: int
    content: bytes
    state_content: bytes | None
