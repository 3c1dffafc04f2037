"""Live messages, as they are shown or cancelled from outside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class MessageStatus(StrEnum):
    """SCHEDULED: the message waits and is not due yet."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    LEASED = "leased"


class CancelOutcome(StrEnum):
    CANCELLED = "cancelled"
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
