"""Dead letters: buried messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class RedriveOutcome(StrEnum):
    """DUPLICATE: a live message has its key. DROPPED: the channel is full. It remains a dead letter."""

    REDRIVEN = "redriven"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"
    UNKNOWN = "unknown"
    BUSY = "busy"


class PurgeOutcome(StrEnum):
    PURGED = "purged"
    UNKNOWN = "unknown"
    BUSY = "busy"


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
    content_bytes: int
    """The length of the whole content; a page of dead letters has only its beginning."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DeadGroup:
    """Dead letters with the same last line of their error; `error` is that line, or "" if they have none."""

    error: str
    letters: int
    channels: int
    first_at: datetime
    last_at: datetime
    last_id: int


@dataclass(frozen=True)
class DeadGroups:
    """Groups of dead letters, the largest first; if not `is_complete`, only of those buried last."""

    groups: list[DeadGroup]
    is_complete: bool
