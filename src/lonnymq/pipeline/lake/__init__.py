"""The lake: a directory of Delta or plain Parquet tables, each partitioned by day."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pyspark.sql.types import StructType

from lonnymq.errors import invalid
from lonnymq.pipeline import schemas
from lonnymq.pipeline.lake.commit import Batch, LakeConflict
from lonnymq.pipeline.lake.delta import DeltaLakeTable
from lonnymq.pipeline.lake.parquet import ParquetTable
from lonnymq.pipeline.lake.storage import is_local

__all__ = ["Batch", "Lake", "LakeConflict", "LakeFormat", "Table"]

Table = DeltaLakeTable | ParquetTable


class LakeFormat(StrEnum):
    DELTA = "delta"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Lake:
    """Where the tables are; all executors must reach `path`."""

    path: str
    form: LakeFormat = LakeFormat.DELTA

    def __post_init__(self) -> None:
        if not self.path:
            raise invalid("path", self.path, "a directory or the URL of one")
        if is_local(self.path):
            object.__setattr__(self, "path", str(Path(self.path).resolve()))
        elif LakeFormat(self.form) is LakeFormat.PARQUET:
            raise invalid(
                "path", self.path, "a directory, because only Delta tables can be on object storage"
            )

    def require(self) -> None:
        """Raise if nothing can have been written here: the path may be mistyped."""
        if is_local(self.path) and not Path(self.path).is_dir():
            raise invalid("lake", self.path, "a directory that archive, ingest or generate has made")

    def table(self, name: str, schema: StructType) -> Table:
        kind = DeltaLakeTable if LakeFormat(self.form) is LakeFormat.DELTA else ParquetTable
        return kind(f"{self.path}/{name}", schema)

    @property
    def attempts(self) -> Table:
        return self.table("attempts", schemas.ATTEMPTS)

    @property
    def policies(self) -> Table:
        return self.table("policies", schemas.POLICIES)

    @property
    def waiting(self) -> Table:
        return self.table("waiting", schemas.WAITING)

    @property
    def rejected(self) -> Table:
        return self.table("rejected", schemas.REJECTED)

    @property
    def forecast(self) -> Table:
        return self.table("forecast", schemas.FORECAST)

    @property
    def reasons(self) -> Table:
        return self.table("reasons", schemas.REASONS)

    def windows(self, window_s: int) -> Table:
        return self.table(f"windows_{window_s}s", schemas.WINDOWS)

    def fairness(self, window_s: int) -> Table:
        return self.table(f"fairness_{window_s}s", schemas.FAIRNESS)
