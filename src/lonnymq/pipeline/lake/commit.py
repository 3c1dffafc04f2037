"""Decides which rows a commit adds: each row is committed once and in order, or an error is raised."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lonnymq.errors import LonnyError
from lonnymq.model import HistoryPosition

# Returns the number of a writer's last committed batch.
LastBatch = Callable[[str], int | None]


class LakeConflict(LonnyError):
    """The batch does not follow the lake's last one, or another writer was faster; nothing was written."""


@dataclass(frozen=True)
class Batch:
    """Identifies a commit: the writer, and a number that grows with each of its commits."""

    writer: str
    number: int


class Addition(Protocol):
    """Rows to be added to a table once."""

    @property
    def batches(self) -> Sequence[Batch]:
        """What the commit records."""

    def new_rows(self, frame: DataFrame, last_batch: LastBatch, path: str) -> DataFrame | None:
        """Return the rows that the table lacks, or None if it has them all; raise if some would be lost."""

    def predecessor(self, last_batch: LastBatch) -> str:
        """Name the state to which the rows are added: a repetition of the commit begins in the same one."""


@dataclass(frozen=True)
class NumberedAddition:
    """A batch is new if its number is; a writer that crashed during its commit repeats the last one."""

    batch: Batch
    owner: Batch | None = None

    @property
    def batches(self) -> Sequence[Batch]:
        return [self.batch, *([self.owner] if self.owner else [])]

    def new_rows(self, frame: DataFrame, last_batch: LastBatch, path: str) -> DataFrame | None:
        return frame if self._is_new(last_batch, path) else None

    def predecessor(self, last_batch: LastBatch) -> str:
        return f"{self.batch.writer} {self.batch.number}"

    def _is_new(self, last_batch: LastBatch, path: str) -> bool:
        if self.owner is not None and last_batch(self.owner.writer) not in (None, self.owner.number):
            raise LakeConflict(
                f"{path} was written by another stream; a new checkpoint would archive all history again. "
                "Use the checkpoint that belongs to this lake, or start a new lake"
            )
        last = last_batch(self.batch.writer)
        if last is None or self.batch.number > last:
            return True
        if self.batch.number == last:
            return False
        raise LakeConflict(
            f"{path} has batch {last} of {self.batch.writer!r}, but batch {self.batch.number} was sent: the"
            " checkpoint was reset or restored, so rows would be missing or repeated. Use the checkpoint that"
            " belongs to this lake, or start a new lake"
        )


@dataclass(frozen=True)
class HistorySpan:
    """The rows of a history after `start` and up to `end`; `is_first` if the stream begins there.

    Rows have the columns `xid` and `id`. The table records how far it has the history, so it does not matter
    how a stream divides it into batches, nor whether the stream's checkpoint was lost.
    """

    writer: str
    origin: str
    start: HistoryPosition
    end: HistoryPosition
    is_first: bool
    # What earlier versions compared, which recorded no positions.
    numbered: NumberedAddition

    @property
    def batches(self) -> Sequence[Batch]:
        return [
            Batch(f"{self.writer} origin", hash_of(self.origin)),
            Batch(f"{self.writer} xid", self.end.xid),
            Batch(f"{self.writer} id", self.end.id),
        ]

    def new_rows(self, frame: DataFrame, last_batch: LastBatch, path: str) -> DataFrame | None:
        last = last_position(last_batch, self.writer)
        if last is None:
            return self._rows_of_first_span(frame, last_batch, path)
        if last_batch(f"{self.writer} origin") != hash_of(self.origin) and self.start != last:
            raise LakeConflict(
                f"{path} has the history of another database, or of this one before a restore or failover: it"
                f" ends at {_text(last)}, but the checkpoint continues after {_text(self.start)}. Use the"
                " checkpoint and the database that belong to this lake, or start a new lake"
            )
        if self.end <= last:
            return None
        if self.start > last:
            raise LakeConflict(self._describe_gap(path, last))
        if self.start == last:
            return frame
        xid, id_ = f.col("xid"), f.col("id")
        return frame.where((xid > last.xid) | ((xid == last.xid) & (id_ > last.id)))

    def predecessor(self, last_batch: LastBatch) -> str:
        last = last_position(last_batch, self.writer)
        return self.numbered.predecessor(last_batch) if last is None else f"{self.writer} {_text(last)}"

    def _rows_of_first_span(self, frame: DataFrame, last_batch: LastBatch, path: str) -> DataFrame | None:
        if last_batch(self.numbered.batch.writer) is None and not self.is_first:
            raise LakeConflict(
                f"{path} is empty, but the checkpoint continues after {_text(self.start)}: the attempts"
                " before that would be missing. Delete the checkpoint to archive all history that is left"
            )
        return self.numbered.new_rows(frame, last_batch, path)

    def _describe_gap(self, path: str, last: HistoryPosition) -> str:
        if self.is_first:
            return (
                f"{path} ends at {_text(last)}, but history up to {_text(self.start)} has been dropped: the"
                " attempts in between would be missing. Restore the lake, or start a new one"
            )
        return (
            f"{path} ends at {_text(last)}, but the checkpoint continues after {_text(self.start)}: the"
            " attempts in between would be missing, because the lake was restored or lost its last commit."
            " Delete the checkpoint: the archive then continues where the lake ends, if history still has"
            " these attempts"
        )


def last_position(last_batch: LastBatch, writer: str) -> HistoryPosition | None:
    """Return how far a table has the history that a writer adds; None if that is not recorded."""
    xid, id_ = last_batch(f"{writer} xid"), last_batch(f"{writer} id")
    return None if xid is None or id_ is None else HistoryPosition(xid, id_)


def hash_of(text: str) -> int:
    """Return a number for a text, which Delta can record."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def _text(position: HistoryPosition) -> str:
    return f"({position.xid}, {position.id})"
