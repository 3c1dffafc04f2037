"""Workers: how they stand for their leases, what they notice of each other, and what they report."""

from dataclasses import dataclass
from datetime import datetime
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


class WorkerState(StrEnum):
    """GONE: it has not reported for 15 seconds, or its session is gone; it is shown for an hour."""

    WORKING = "working"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True)
class FleetPart:
    """The processes in one state, with their slots."""

    processes: int = 0
    slots: int = 0
    busy: int = 0


@dataclass(frozen=True, kw_only=True)
class HeldMessage:
    """A message that a worker's process holds, and since when."""

    id: int
    channel: str
    leased_at: datetime


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    """A worker's process, as it last reported itself.

    `tasks` are its first 50. Of its `slots`, `busy` have a message; the process holds `held` messages, with
    those that wait for a slot. `holds` are the 10 that it has held longest.
    """

    worker: str
    state: WorkerState
    host: str
    pid: int
    version: str
    tasks: tuple[str, ...]
    slots: int
    busy: int
    held: int
    holds: tuple[HeldMessage, ...]
    started_at: datetime
    seen_at: datetime
    drain_at: datetime | None


class DrainOutcome(StrEnum):
    """BUSY: another transaction has the process's row locked."""

    DRAINING = "draining"
    BUSY = "busy"


@dataclass(frozen=True)
class WorkerDrain:
    """A process that was asked to drain."""

    worker: str
    outcome: DrainOutcome


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """What a process reports about itself. `leased_us` are microseconds since 1970."""

    host: str
    pid: int
    version: str
    tasks: tuple[str, ...]
    slots: int
    uptime_ms: int
    has_session: bool
    busy: int
    held: int
    message_ids: tuple[int, ...]
    channels: tuple[str, ...]
    leased_us: tuple[int, ...]
    is_draining: bool


@dataclass(frozen=True)
class ReportReply:
    """When to report again, and whether somebody asked the process to drain."""

    wait_ms: int
    is_asked_to_drain: bool
