"""Tables of plain Parquet, for readers that know nothing else, on a local or mounted file system.

A file has a hidden name until it counts. Each batch counts once, like Delta's, but a reader may see half of
one while it is being committed, or until a commit that was cut off is repeated.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lonnymq.pipeline.lake import files
from lonnymq.pipeline.lake.commit import Batch, is_new
from lonnymq.pipeline.lake.delta import days_of
from lonnymq.pipeline.lake.files import Written
from lonnymq.pipeline.writing import replace_file

LOG, LOCK = "_batches.json", "_lock"


class PlainTable:
    """One table; the same words as Delta's, but no versions: what is incremental there starts over here."""

    def __init__(self, path: str, schema: StructType) -> None:
        self.path = path
        self.schema = schema
        self._root = Path(path)

    @property
    def version(self) -> int | None:
        """Counted by commits."""
        log = self._log()
        return sum(log.values()) if log else None

    def last_batch(self, writer: str) -> int | None:
        return self._log().get(writer)

    def paths(self, version: int | None = None) -> frozenset[str] | None:
        """The files that count now; of any other time nothing is known."""
        if version is not None:
            return None
        return frozenset(str(path) for path in self._root.glob("day=*/[!.]*.parquet"))

    def read(self, spark: SparkSession, paths: Iterable[str] | None = None) -> DataFrame:
        chosen = sorted((self.paths() or ()) if paths is None else paths)
        if not chosen:
            return spark.createDataFrame([], self.schema)
        return spark.read.schema(self.schema).option("basePath", self.path).parquet(*chosen)

    def days(self) -> list[date]:
        return days_of(self.paths() or ())

    def append(self, frame: DataFrame, batch: Batch, owner: Batch | None = None) -> int | None:
        if not is_new(batch, owner, self.last_batch, self.path):
            return None
        name = _name(batch)
        written = files.write(frame, self.path, f".{name}")
        with self.alone():
            # Somebody else may have been quicker; what it leaves hidden does not count.
            if not is_new(batch, owner, self.last_batch, self.path):
                return None
            # What an earlier try of this batch had made visible before it was cut off.
            for left in self._root.glob(f"day=*/{name}*.parquet"):
                left.unlink()
            self._show(written)
            self._record([batch, *([owner] if owner else [])])
        return sum(one.rows for one in written)

    def replace(self, frame: DataFrame, days: Sequence[date] | None, batches: Sequence[Batch]) -> int:
        written = files.write(frame, self.path, ".part-")
        with self.alone():
            now = self.paths() or ()
            old = [Path(path) for path in now if days is None or set(days_of([path])) & set(days)]
            self._show(written)
            for path in old:
                path.unlink(missing_ok=True)
            self._record(batches)
        return sum(one.rows for one in written)

    def vacuum(self) -> int:
        """Remove hidden files: leftovers of tasks that failed. Nobody may be writing."""
        hidden = list(self._root.glob("day=*/.*.parquet"))
        for path in hidden:
            path.unlink()
        return len(hidden)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Commit while nobody else does; whoever dies lets go."""
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _show(self, written: Sequence[Written]) -> None:
        for one in written:
            hidden = self._root / one.path
            hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))

    def _log(self) -> dict[str, int]:
        try:
            log: dict[str, int] = json.loads((self._root / LOG).read_text())
        except FileNotFoundError:
            return {}
        return log

    def _record(self, batches: Sequence[Batch]) -> None:
        log = self._log() | {batch.writer: batch.number for batch in batches}
        replace_file(self._root / LOG, json.dumps(log))


def _name(batch: Batch) -> str:
    return f"{hashlib.sha256(batch.writer.encode()).hexdigest()[:12]}-{batch.number}-"
