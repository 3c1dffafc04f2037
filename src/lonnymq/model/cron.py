"""Crons, which create messages on a schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class CatchUp(StrEnum):
    """Which ticks are created late that were missed while no worker ran: all, only the latest, or none."""

    ALL = "all"
    LATEST = "latest"
    NONE = "none"


class CronSetOutcome(StrEnum):
    """UNCHANGED: the cron was already set this way."""

    SET = "set"
    UNCHANGED = "unchanged"
    UNKNOWN = "unknown"
    BUSY = "busy"


class CronDeleteOutcome(StrEnum):
    DELETED = "deleted"
    UNKNOWN = "unknown"
    BUSY = "busy"


class CronTickOutcome(StrEnum):
    """STALE: another worker was first, or the cron was paused, changed or deleted."""

    TICKED = "ticked"
    STALE = "stale"
    BUSY = "busy"


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A message to create at every tick of a cron expression."""

    name: str
    expression: str
    channel: str
    payload: Any
    timezone: str = "UTC"
    catch_up: CatchUp = CatchUp.LATEST
    max_attempts: int | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class CronStatus:
    """A cron's state. Ticks up to `mark_at` are decided; `next_at` is None until a worker computes it."""

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
    """A cron whose ticks after `mark_at` and up to `now_at`, the database's clock, are to be decided."""

    name: str
    expression: str
    timezone: str
    catch_up: CatchUp
    mark_at: datetime
    now_at: datetime
    content_bytes: int = 0


@dataclass(frozen=True)
class DueCrons:
    """The crons that are due. If there are none, the next one is due in `wait_ms` (None: there is none)."""

    crons: tuple[DueCron, ...]
    wait_ms: int | None


@dataclass(frozen=True)
class Ticks:
    """The decision about a cron's ticks: a message for each of `ticks`, and none for others up to `until_at`.

    If too many ticks were missed to create all of them, those up to `skipped_to` are skipped.
    """

    ticks: tuple[datetime, ...]
    until_at: datetime
    next_at: datetime
    skipped_to: datetime | None = None
