"""Delta tables: executors write the files, and one transaction commits them."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lonnymq.pipeline.durable import flush
from lonnymq.pipeline.lake import files
from lonnymq.pipeline.lake.commit import Addition, Batch, LakeConflict, NumberedAddition
from lonnymq.pipeline.lake.files import WrittenFile, days_of
from lonnymq.pipeline.lake.reading import read
from lonnymq.pipeline.lake.storage import is_local

# Large enough to be read quickly, small enough for one task.
TARGET_BYTES = 256 * 2**20
# Names of files in the log begin with their version, except that of one.
VERSION_DIGITS = 20
LAST_CHECKPOINT = "_last_checkpoint"


class DeltaLakeTable:
    """A table partitioned by day. It is read through its log: the directory also has uncommitted files."""

    def __init__(self, path: str, schema: StructType) -> None:
        self.path = path
        self.schema = schema

    @property
    def version(self) -> int | None:
        """The number of the last commit; None if the table does not exist."""
        table = self._open()
        return None if table is None else int(table.version())

    def last_batch(self, writer: str) -> int | None:
        """The number of a writer's last committed batch."""
        table = self._open()
        return None if table is None else _last_batch(table, writer)

    def paths(self, version: int | None = None) -> frozenset[str] | None:
        """The committed files, now or at a version; None if that version is no longer known."""
        table = self._open()
        if table is None:
            return frozenset()
        if version is not None:
            try:
                table.load_as_version(version)
            except DeltaError:
                return None
        found = table.file_uris()
        # For a local directory, names are percent-encoded like a URL.
        return frozenset(map(unquote, found) if is_local(self.path) else found)

    def read(self, spark: SparkSession, paths: Iterable[str] | None = None) -> DataFrame:
        """All rows, or those of some files."""
        return read(spark, self.schema, self.path, (self.paths() or ()) if paths is None else paths)

    def days(self) -> list[date]:
        """The days that have rows."""
        return days_of(self.paths() or ())

    def append(self, frame: DataFrame, batch: Batch, owner: Batch | None = None) -> int | None:
        """Add all rows or none, once per batch; return how many, or None if the batch was already there.

        The first commit with an `owner` records it; from then on only that owner may append.
        """
        return self.add(frame, NumberedAddition(batch, owner))

    def add(self, frame: DataFrame, addition: Addition) -> int | None:
        """Add the rows that the table lacks, all or none; return how many, or None if it has them all."""
        # The check and the commit use one version of the table, so a commit in between makes this one fail.
        table = self._open_or_create()
        new = addition.new_rows(frame, partial(_last_batch, table), self.path)
        if new is None:
            return None
        written = files.write(new, self.path)
        self._commit(table, written, "append", addition.batches)
        return sum(one.rows for one in written)

    def replace(self, frame: DataFrame, days: Sequence[date] | None, batches: Sequence[Batch]) -> int:
        """Replace the rows of some days, or of all days, in one commit; return how many were written."""
        table = self._open_or_create()
        written = files.write(files.by_day(frame), self.path)
        filters = None if days is None else [("day", "in", sorted({day.isoformat() for day in days}))]
        if days is None or days:
            self._commit(table, written, "overwrite", batches, filters)
        return sum(one.rows for one in written)

    def join_files(self) -> tuple[int, int] | None:
        """Join each day's small files into files of up to `TARGET_BYTES`; no row changes.

        Return the versions before and after; other processes may have committed in between.
        """
        table = self._open()
        if table is not None:
            before, known = table.version(), self.paths() or frozenset()
            properties = WriterProperties(compression="ZSTD", compression_level=1)
            table.optimize.compact(
                target_size=TARGET_BYTES, max_concurrent_tasks=1, writer_properties=properties
            )
            if is_local(self.path):
                joined = (self.paths() or frozenset()) - known
                flush(joined | {os.path.dirname(path) for path in joined})
                self._flush_log(before)
            return before, int(table.version())
        return None

    def record(self, batches: Sequence[Batch]) -> None:
        """Record batches without changing rows."""
        self._commit(self._open_or_create(), [], "append", batches)

    def vacuum(self) -> int:
        """Delete files that are not, or no longer, committed, once they are a week old; return how many."""
        table = self._open()
        if table is None:
            return 0
        # Without `full`, only files that were committed once are considered, not those of failed tasks.
        return len(table.vacuum(retention_hours=168, dry_run=False, full=True))

    def delete_replaced(self, older_than: timedelta) -> None:
        """Delete files that were replaced so long ago; a reader that opened the table before fails."""
        table = self._open()
        if table is not None:
            hours = int(older_than.total_seconds()) // 3600
            table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)

    def _commit(
        self,
        table: DeltaTable,
        written: Sequence[WrittenFile],
        mode: str,
        batches: Sequence[Batch],
        filters: Any = None,
    ) -> None:
        now_ms, before = int(time.time() * 1000), table.version()
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
            raise self._conflict(error) from error
        self._flush_log(before)

    def _flush_log(self, since: int) -> None:
        """Flush what was written to the log since a version, because deltalake does not."""
        if not is_local(self.path):
            return
        log = f"{self.path}/_delta_log"
        for name in os.listdir(log):
            version = name[:VERSION_DIGITS]
            if name == LAST_CHECKPOINT or (version.isdigit() and int(version) >= since):
                # Another process may delete old files meanwhile.
                with suppress(FileNotFoundError):
                    flush([f"{log}/{name}"])
        flush([log, self.path])

    def _conflict(self, error: DeltaError) -> LakeConflict:
        return LakeConflict(
            f"another process committed to {self.path} at the same time, so nothing was written: run the "
            f"step again, one process at a time ({error})"
        )

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.path)
        except TableNotFoundError:
            return None

    def _open_or_create(self) -> DeltaTable:
        table = self._open()
        if table is None:
            types = files.arrow_schema(self.schema)
            return DeltaTable.create(self.path, types, mode="ignore", partition_by=["day"])
        self._add_new_columns(table)
        return table

    def _add_new_columns(self, table: DeltaTable) -> None:
        """Add the columns that the table lacks, because an earlier version of LonnyMQ created it."""
        known = {field.name for field in table.schema().fields}
        wanted = Schema.from_arrow(files.arrow_schema(self.schema)).fields
        missing = [field for field in wanted if field.name not in known]
        if missing:
            try:
                table.alter.add_columns(missing)
            except DeltaError as error:
                raise self._conflict(error) from error


def _last_batch(table: DeltaTable, writer: str) -> int | None:
    found = table.transaction_version(writer)
    return None if found is None else int(found)
