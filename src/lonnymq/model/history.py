"""History: its partitions, its readers, and positions in it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HistoryMode(StrEnum):
    OFF = "off"
    METADATA = "metadata"
    FULL = "full"


@dataclass(frozen=True)
class HistoryPartition:
    """One day of history (UTC). An interrupted prune leaves it detaching or detached."""

    name: str
    until_ms: int
    # By the database's clock.
    is_over: bool
    is_attached: bool
    is_detaching: bool


@dataclass(frozen=True)
class HistoryReader:
    """A reader that follows history. `behind` counts the rows it is not done with, up to a limit.

    `horizon` is the oldest open transaction, beyond which no reader may read.
    """

    name: str
    done_xid: int
    done_id: int
    followed_at: datetime
    behind: int
    horizon: int


@dataclass(frozen=True)
class HistoryBlocker:
    """The oldest transaction on the server that has written: no reader of history may read beyond it.

    `since` is None if the queue's owner may not see it; `gid` identifies a prepared transaction.
    """

    xid: int
    pid: int | None
    gid: str | None
    database: str | None
    role: str | None
    application: str | None
    since: datetime | None

    def __str__(self) -> str:
        """Return whose transaction it is, in a few words."""
        who = f"prepared transaction {self.gid!r}" if self.pid is None else f"pid {self.pid}"
        of = ", ".join(part for part in (self.application, self.role, self.database) if part)
        since = "" if self.since is None else f", open since {self.since:%Y-%m-%d %H:%M:%SZ}"
        return f"{who} ({of}){since}"


@dataclass(frozen=True, order=True)
class HistoryPosition:
    """The position after a row of history, in the order of transactions."""

    xid: int
    id: int


@dataclass(frozen=True)
class HistorySlice:
    """The rows up to `end`, after the previous slice."""

    end: HistoryPosition
    rows: int
