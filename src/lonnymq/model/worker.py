"""Workers that stand for their leases: how they register, and what they notice of each other."""

from dataclasses import dataclass
from enum import StrEnum


class RegisterOutcome(StrEnum):
    """POOLED: a pooler is in between, so no session can stand for the worker."""

    REGISTERED = "registered"
    POOLED = "pooled"
    BUSY = "busy"


@dataclass(frozen=True)
class Watched:
    """How many leases were ended early, and whose; the next watch is due in `wait_ms`."""

    wait_ms: int
    leases: int
    workers: tuple[str, ...]
