"""What creates messages by the clock."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class CatchUp(StrEnum):
    """What becomes of ticks that nobody was there for: each is created late, only the latest, or none."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


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
    content_bytes: int = 0


@dataclass(frozen=True)
class DueCrons:
    """Those that are due; if there are none, `wait_ms` is until the next one is (None: there is none)."""

    crons: tuple[DueCron, ...]
    wait_ms: int | None


@dataclass(frozen=True)
class Ticks:
    """What to decide for a cron: a message for each of `ticks`, none for others up to `until_at`.

    If too many were missed for all of them to be caught up, those up to `skipped_to` are not.
    """

    ticks: tuple[datetime, ...]
    until_at: datetime
    next_at: datetime
    skipped_to: datetime | None = None
