"""Executors write rows as zstd-compressed Parquet files, one directory per day; no file is written twice."""

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from lonnymq.pipeline.durable import flush
from lonnymq.pipeline.lake.storage import is_local, open_location

# Each open writer holds a row group in memory; of more days, the oldest file is closed first.
MAX_OPEN_FILES = 16
WRITTEN_FILE_DDL = "path string, day date, rows bigint, bytes bigint"


@dataclass(frozen=True)
class WrittenFile:
    """A file; `path` is relative to its table."""

    path: str
    day: date
    rows: int
    bytes: int


def write(frame: DataFrame, root: str, prefix: str = "part-") -> list[WrittenFile]:
    """Write the rows below `root`, and return the files of the winning attempts of tasks.

    A task that failed, or whose speculative copy won, leaves files that nothing refers to.
    """
    types = arrow_schema(frame.schema)
    rows = frame.mapInArrow(lambda batches: _write_batches(batches, root, prefix, types), WRITTEN_FILE_DDL)
    return [WrittenFile(*row) for row in rows.collect()]


def by_day(frame: DataFrame) -> DataFrame:
    """Bring the rows of each day together, so that a day has as few files as its size needs.

    If Spark plans adaptively, as it does unless told otherwise, a large day is divided among tasks.
    """
    is_adaptive = frame.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true"
    gathered = frame.hint("rebalance", f.col("day")) if is_adaptive else frame.repartition("day")
    return gathered.sortWithinPartitions("day")


def arrow_schema(schema: StructType) -> Any:
    """The Arrow schema of a file; times are UTC, whatever the session's time zone."""
    import pyarrow as pa

    types = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "string": pa.string(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "array<struct<ms:bigint,count:bigint>>": pa.list_(
            pa.struct([("ms", pa.int64()), ("count", pa.int64())])
        ),
    }
    return pa.schema([pa.field(field.name, types[field.dataType.simpleString()]) for field in schema])


def days_of(paths: Iterable[str]) -> list[date]:
    """The days in the names of files."""
    return sorted({date.fromisoformat(path.rpartition("/day=")[2][:10]) for path in paths})


def _write_batches(batches: Iterator[Any], root: str, prefix: str, types: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    writers: dict[date, _Writer] = {}
    done: list[WrittenFile] = []
    for batch in batches:
        table = pa.Table.from_batches([batch]).cast(types)
        for day in pc.unique(table["day"]).to_pylist():
            if day not in writers:
                if len(writers) >= MAX_OPEN_FILES:
                    done.append(writers.pop(next(iter(writers))).close())
                writers[day] = _Writer(root, prefix, day, types)
            writers[day].write(table.filter(pc.equal(table["day"], pa.scalar(day))))
    done += [writer.close() for writer in writers.values()]
    yield pa.RecordBatch.from_pydict(
        {
            "path": pa.array([one.path for one in done], pa.string()),
            "day": pa.array([one.day for one in done], pa.date32()),
            "rows": pa.array([one.rows for one in done], pa.int64()),
            "bytes": pa.array([one.bytes for one in done], pa.int64()),
        }
    )


class _Writer:
    """Writes one file of one day."""

    def __init__(self, root: str, prefix: str, day: date, types: Any) -> None:
        import pyarrow.parquet as pq

        self.day = day
        self.path = f"day={day.isoformat()}/{prefix}{uuid.uuid4().hex}.parquet"
        self.files, base = open_location(root)
        self.full_path = f"{base.rstrip('/')}/{self.path}"
        # Object stores have no directories.
        if is_local(root):
            os.makedirs(os.path.dirname(self.full_path), exist_ok=True)
        self.schema = types.remove(types.get_field_index("day"))
        self.writer = pq.ParquetWriter(
            self.full_path, self.schema, compression="zstd", compression_level=1, filesystem=self.files
        )
        self.rows = 0

    def write(self, table: Any) -> None:
        self.writer.write_table(table.drop_columns(["day"]))
        self.rows += table.num_rows

    def close(self) -> WrittenFile:
        self.writer.close()
        if self.files.type_name == "local":
            # History may be dropped as soon as it is archived.
            flush([self.full_path, os.path.dirname(self.full_path)])
        return WrittenFile(self.path, self.day, self.rows, self.files.get_file_info(self.full_path).size)
