"""Batch reads: history in slices up to one horizon, and each live table in one snapshot."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lonnymq.calls import follow as calls
from lonnymq.calls.statement import Call, Statement, nothing
from lonnymq.errors import HistoryDropped
from lonnymq.spark import columns
from lonnymq.spark.database import open_queue, read_batches
from lonnymq.spark.options import ReadOptions
from lonnymq.spark.partitions import BEGINNING, SlicePartition, slice_partitions

if TYPE_CHECKING:
    import pyarrow as pa


class HistoryBatchReader(DataSourceReader):
    """Reads, exactly once, each row whose transaction had ended when the read was planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Divide history by number of rows; rows added later are beyond the horizon."""
        with open_queue(self._options.connect) as queue:
            call = calls.slices(None, None, None, None, self._options.rows_per_partition)
            return slice_partitions(BEGINNING, queue.caller.perform(call))

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of a slice; raises if some of them are gone."""
        return read_slice(self._options, partition)


class LiveTableReader(DataSourceReader):
    """Reads a table that changes all the time: one partition, one snapshot."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Run the task's statement on the driver first, so that errors appear there."""
        with open_queue(self._options.connect) as queue:
            queue.caller.perform(Call(self._statement(" limit 0"), (), nothing))
        return [InputPartition(None)]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        return read_batches(self._options.connect, self._statement(), self._options.columns)

    def _statement(self, limit: str = "") -> Statement:
        relation = columns.RELATIONS[self._options.table]
        select_list = columns.select_list(self._options.columns)
        return Statement(relation, f"select {select_list} from {{schema}}.{relation} h{limit}")


def read_slice(options: ReadOptions, partition: SlicePartition) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a slice; raise if there are fewer or more than when the slice was planned."""
    if not partition.rows:
        return
    select_list = columns.select_list(options.columns)
    found = 0
    for batch in read_batches(
        options.connect, calls.rows(select_list, partition.start, partition.end), options.columns
    ):
        found += batch.num_rows
        yield batch
    if found != partition.rows:
        raise HistoryDropped(
            f"history has {found} rows from {partition.start} to {partition.end}, but had {partition.rows}"
            " when the read was planned: rows were dropped in between"
        )
