"""Plain Parquet tables on a local or mounted file system, for readers that do not understand Delta.

A file has a hidden name until it is committed. Each batch is committed once, as in a Delta table, but a
reader may see part of a batch while it is being committed, or until an interrupted commit is repeated.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lonnymq.pipeline.atomic_file import replace_file
from lonnymq.pipeline.durable import flush
from lonnymq.pipeline.lake import files
from lonnymq.pipeline.lake.commit import Addition, Batch, LakeConflict, NumberedAddition
from lonnymq.pipeline.lake.files import WrittenFile, days_of
from lonnymq.pipeline.lake.reading import read

LOG_NAME, LOCK_NAME = "_batches.json", "_lock"


class ParquetTable:
    """A table like `DeltaLakeTable`, but without versions, so incremental jobs recompute everything."""

    def __init__(self, path: str, schema: StructType) -> None:
        self.path = path
        self.schema = schema
        self._root = Path(path)

    @property
    def version(self) -> int | None:
        """The number of commits; None before the first."""
        log = self._log()
        return sum(log.values()) if log else None

    def last_batch(self, writer: str) -> int | None:
        return self._log().get(writer)

    def paths(self, version: int | None = None) -> frozenset[str] | None:
        """The committed files; None for a past version, because none is kept."""
        if version is not None:
            return None
        return frozenset(str(path) for path in self._root.glob("day=*/[!.]*.parquet"))

    def read(self, spark: SparkSession, paths: Iterable[str] | None = None) -> DataFrame:
        return read(spark, self.schema, self.path, (self.paths() or ()) if paths is None else paths)

    def days(self) -> list[date]:
        return days_of(self.paths() or ())

    def append(self, frame: DataFrame, batch: Batch, owner: Batch | None = None) -> int | None:
        return self.add(frame, NumberedAddition(batch, owner))

    def add(self, frame: DataFrame, addition: Addition) -> int | None:
        prefix = _file_prefix(addition.predecessor(self.last_batch))
        new = addition.new_rows(frame, self.last_batch, self.path)
        if new is None:
            return None
        written = files.write(new, self.path, f".{prefix}")
        with self.exclusive_lock():
            # Another process may have committed meanwhile; the hidden files written here are then ignored.
            if addition.new_rows(frame, self.last_batch, self.path) is None:
                return None
            if prefix != _file_prefix(addition.predecessor(self.last_batch)):
                raise LakeConflict(
                    f"another process committed to {self.path} at the same time, so nothing was written: run"
                    " the step again, one process at a time"
                )
            # An earlier, interrupted commit of these rows may have left visible files.
            for leftover in self._root.glob(f"day=*/{prefix}*.parquet"):
                leftover.unlink()
            self._make_visible(written)
            self._record(addition.batches)
        return sum(one.rows for one in written)

    def replace(self, frame: DataFrame, days: Sequence[date] | None, batches: Sequence[Batch]) -> int:
        written = files.write(files.by_day(frame), self.path, ".part-")
        with self.exclusive_lock():
            now = self.paths() or ()
            old = [Path(path) for path in now if days is None or set(days_of([path])) & set(days)]
            self._make_visible(written)
            for path in old:
                path.unlink(missing_ok=True)
            self._record(batches)
        return sum(one.rows for one in written)

    def join_files(self) -> tuple[int, int] | None:
        """Do nothing: without a log, readers could see rows twice or not at all while files are joined."""
        return None

    def record(self, batches: Sequence[Batch]) -> None:
        with self.exclusive_lock():
            self._record(batches)

    def vacuum(self) -> int:
        """Delete hidden files, which failed tasks left behind; no writer may be active."""
        hidden = list(self._root.glob("day=*/.*.parquet"))
        for path in hidden:
            path.unlink()
        return len(hidden)

    def delete_replaced(self, older_than: timedelta) -> None:
        """Do nothing: replaced files are deleted at once."""

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Hold the table's lock, so that no other process commits; the lock ends with the process."""
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make_visible(self, written: Sequence[WrittenFile]) -> None:
        for one in written:
            hidden = self._root / one.path
            hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        flush({(self._root / one.path).parent for one in written})

    def _log(self) -> dict[str, int]:
        try:
            log: dict[str, int] = json.loads((self._root / LOG_NAME).read_text())
        except FileNotFoundError:
            return {}
        return log

    def _record(self, batches: Sequence[Batch]) -> None:
        log = self._log() | {batch.writer: batch.number for batch in batches}
        replace_file(self._root / LOG_NAME, json.dumps(log))


def _file_prefix(predecessor: str) -> str:
    return f"{hashlib.sha256(predecessor.encode()).hexdigest()[:16]}-"
