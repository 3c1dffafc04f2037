"""Files of rows, written by the executors: zstd Parquet, one directory per day, no file written twice."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

# More days at once are written one after the other: a writer holds a row group in memory.
MOST_OPEN = 16
WRITTEN = "path string, day date, rows bigint, bytes bigint"


@dataclass(frozen=True)
class Written:
    """One file; `path` is relative to its table."""

    path: str
    day: date
    rows: int
    bytes: int


def write(frame: DataFrame, root: str, prefix: str = "part-") -> list[Written]:
    """Write the rows below `root`, and return the files of the attempts that won.

    A task that failed, or lost against its copy, leaves files that nobody refers to.
    """
    kinds = arrow_schema(frame.schema)
    rows = frame.mapInArrow(lambda batches: _written(batches, root, prefix, kinds), WRITTEN)
    return [Written(*row) for row in rows.collect()]


def arrow_schema(schema: StructType) -> Any:
    """The types in a file: times are in UTC, whatever the session's time zone."""
    import pyarrow as pa

    kinds = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "string": pa.string(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema([pa.field(field.name, kinds[field.dataType.simpleString()]) for field in schema])


def _written(batches: Iterator[Any], root: str, prefix: str, kinds: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    writers: dict[date, _Writer] = {}
    done: list[Written] = []
    for batch in batches:
        table = pa.Table.from_batches([batch]).cast(kinds)
        for day in pc.unique(table["day"]).to_pylist():
            if day not in writers:
                if len(writers) >= MOST_OPEN:
                    done.append(writers.pop(next(iter(writers))).closed())
                writers[day] = _Writer(root, prefix, day, kinds)
            writers[day].write(table.filter(pc.equal(table["day"], pa.scalar(day))))
    done += [writer.closed() for writer in writers.values()]
    yield pa.RecordBatch.from_pydict(
        {
            "path": pa.array([one.path for one in done], pa.string()),
            "day": pa.array([one.day for one in done], pa.date32()),
            "rows": pa.array([one.rows for one in done], pa.int64()),
            "bytes": pa.array([one.bytes for one in done], pa.int64()),
        }
    )


class _Writer:
    """One file of one day."""

    def __init__(self, root: str, prefix: str, day: date, kinds: Any) -> None:
        import pyarrow.parquet as pq
        from pyarrow import fs

        self.day = day
        self.path = f"day={day.isoformat()}/{prefix}{uuid.uuid4().hex}.parquet"
        self.files, base = (fs.FileSystem.from_uri(root)) if "://" in root else (fs.LocalFileSystem(), root)
        self.place = f"{base.rstrip('/')}/{self.path}"
        self.files.create_dir(os.path.dirname(self.place), recursive=True)
        self.kinds = kinds.remove(kinds.get_field_index("day"))
        self.writer = pq.ParquetWriter(
            self.place, self.kinds, compression="zstd", compression_level=1, filesystem=self.files
        )
        self.rows = 0

    def write(self, table: Any) -> None:
        self.writer.write_table(table.drop_columns(["day"]))
        self.rows += table.num_rows

    def closed(self) -> Written:
        self.writer.close()
        if self.files.type_name == "local":
            _make_durable(self.place)
        return Written(self.path, self.day, self.rows, self.files.get_file_info(self.place).size)


def _make_durable(place: str) -> None:
    """History may be dropped once it is archived: so it must be on disk, with its name."""
    for path in (place, os.path.dirname(place)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
