"""It is remembered: days of history, and who follows it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HistoryMode(StrEnum):
    OFF = "off"
    METADATA = "metadata"
    FULL = "full"


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
