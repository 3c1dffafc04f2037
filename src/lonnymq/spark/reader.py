"""Batch read: history in slices up to one horizon; live tables in one snapshot."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lonnymq.calls import follow as calls
from lonnymq.calls.statement import Call, Statement, nothing
from lonnymq.errors import HistoryDropped
from lonnymq.spark import columns
from lonnymq.spark.database import batches, opened
from lonnymq.spark.options import ReadOptions
from lonnymq.spark.partitions import BEGINNING, SlicePartition, of_slices

if TYPE_CHECKING:
    import pyarrow as pa


class HistoryReader(DataSourceReader):
    """All whose transactions had ended when it was planned, each row once."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Cut by rows; what is added meanwhile is beyond the horizon."""
        with opened(self._options.connect) as queue:
            call = calls.slices(None, None, None, None, self._options.rows_per_partition)
            return of_slices(BEGINNING, queue.caller.perform(call))

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Read a slice, and all of it."""
        return read_slice(self._options, partition)


class LiveReader(DataSourceReader):
    """A table that changes all the time: one partition, one snapshot."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Try on the driver what the task will do, for the sake of the error."""
        with opened(self._options.connect) as queue:
            queue.caller.perform(Call(self._statement(" limit 0"), (), nothing))
        return [InputPartition(None)]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        return batches(self._options.connect, self._statement(), self._options.columns)

    def _statement(self, limit: str = "") -> Statement:
        relation = columns.RELATIONS[self._options.table]
        selection = columns.selection(self._options.columns)
        return Statement(relation, f"select {selection} from {{schema}}.{relation} h{limit}")


def read_slice(options: ReadOptions, partition: SlicePartition) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a slice; raise if there are not as many as when it was cut."""
    if not partition.rows:
        return
    selection = columns.selection(options.columns)
    found = 0
    for batch in batches(
        options.connect, calls.rows(selection, partition.start, partition.end), options.columns
    ):
        found += batch.num_rows
        yield batch
    if found != partition.rows:
        raise HistoryDropped(
            f"history has {found} rows from {partition.start} to {partition.end}, and had {partition.rows}"
            " when the read began: some were dropped meanwhile"
        )
