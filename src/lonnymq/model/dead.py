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
    headers: Mapping[str, str] = field(default_factory=dict)
