"""Tables of Delta: executors write the files, one transaction makes them count."""

import json
import time
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lonnymq.pipeline.lake import files
from lonnymq.pipeline.lake.commit import Batch, LakeConflict, is_new
from lonnymq.pipeline.lake.files import Written


class DeltaLakeTable:
    """One table, partitioned by day; read through its log, for the directory also has what does not count."""

    def __init__(self, path: str, schema: StructType) -> None:
        self.path = path
        self.schema = schema

    @property
    def version(self) -> int | None:
        """The number of its last commit; None if there is no table."""
        table = self._open()
        return None if table is None else int(table.version())

    def last_batch(self, writer: str) -> int | None:
        """The number of a writer's last batch."""
        table = self._open()
        return None if table is None else _last_batch(table, writer)

    def paths(self, version: int | None = None) -> frozenset[str] | None:
        """The files that count, now or at a version; None if that version is not known any more."""
        table = self._open()
        if table is None:
            return frozenset()
        if version is not None:
            try:
                table.load_as_version(version)
            except DeltaError:
                return None
        found = table.file_uris()
        # Of a local directory the names come as in a URL, with %20 for a blank.
        return frozenset(found if "://" in self.path else map(unquote, found))

    def read(self, spark: SparkSession, paths: Iterable[str] | None = None) -> DataFrame:
        """All rows, or those of some of its files."""
        chosen = sorted((self.paths() or ()) if paths is None else paths)
        if not chosen:
            return spark.createDataFrame([], self.schema)
        return spark.read.schema(self.schema).option("basePath", self.path).parquet(*chosen)

    def days(self) -> list[date]:
        """The days of which there are rows."""
        return days_of(self.paths() or ())

    def append(self, frame: DataFrame, batch: Batch, owner: Batch | None = None) -> int | None:
        """Add the rows, all or none, once per batch; return how many, None if the batch was there.

        After the first `owner`, which is written in the same commit, no other may append.
        """
        # What is asked and what is committed is one version: who commits in between makes ours fail.
        table = self._opened()
        if not is_new(batch, owner, partial(_last_batch, table), self.path):
            return None
        written = files.write(frame, self.path)
        self._commit(table, written, "append", [batch, *([owner] if owner else [])])
        return sum(one.rows for one in written)

    def replace(self, frame: DataFrame, days: Sequence[date] | None, batches: Sequence[Batch]) -> int:
        """Put these rows in the place of some days', or of all, in one commit."""
        table = self._opened()
        written = files.write(frame, self.path)
        filters = None if days is None else [("day", "in", sorted({day.isoformat() for day in days}))]
        if days is None or days:
            self._commit(table, written, "overwrite", batches, filters)
        return sum(one.rows for one in written)

    def vacuum(self) -> int:
        """Remove files that no longer count, or never did, a week after they were written."""
        table = self._open()
        return 0 if table is None else len(table.vacuum(retention_hours=168, dry_run=False))

    def _commit(
        self,
        table: DeltaTable,
        written: Sequence[Written],
        mode: str,
        batches: Sequence[Batch],
        filters: Any = None,
    ) -> None:
        now_ms = int(time.time() * 1000)
        adds = [
            AddAction(
                path=one.path,
                size=one.bytes,
                partition_values={"day": one.day.isoformat()},
                modification_time=now_ms,
                data_change=True,
                stats=json.dumps({"numRecords": one.rows}),
            )
            for one in written
        ]
        try:
            table.create_write_transaction(
                list(adds),
                mode,
                files.arrow_schema(self.schema),
                partition_by=["day"],
                partition_filters=filters,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(batch.writer, batch.number, now_ms) for batch in batches]
                ),
            )
        except CommitFailedError as error:
            raise LakeConflict(
                f"somebody else has written to {self.path} meanwhile, and nothing of this counts: "
                f"run it again, and one at a time ({error})"
            ) from error

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.path)
        except TableNotFoundError:
            return None

    def _opened(self) -> DeltaTable:
        return self._open() or DeltaTable.create(
            self.path, files.arrow_schema(self.schema), mode="ignore", partition_by=["day"]
        )


def _last_batch(table: DeltaTable, writer: str) -> int | None:
    found = table.transaction_version(writer)
    return None if found is None else int(found)


def days_of(paths: Iterable[str]) -> list[date]:
    """The days that file names speak of."""
    return sorted({date.fromisoformat(path.rpartition("/day=")[2][:10]) for path in paths})
