"""How a read is divided into tasks. Plain values, because they are sent to the executors."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lonnymq.model import HistoryPosition, HistorySlice

BEGINNING = HistoryPosition(0, 0)


@dataclass
class SlicePartition(InputPartition):
    """A slice of history: the positions after `start` up to `end`, and how many rows they have."""

    start: HistoryPosition
    end: HistoryPosition
    rows: int


@dataclass
class MessagesPartition(InputPartition):
    """Messages of a claim, with their tokens."""

    ids: tuple[int, ...]
    tokens: tuple[int, ...]


def slice_partitions(start: HistoryPosition, slices: list[HistorySlice]) -> list[SlicePartition]:
    """Return one partition per slice, or a single empty one: Spark requires at least one."""
    partitions = []
    for one in slices:
        partitions.append(SlicePartition(start, one.end, one.rows))
        start = one.end
    return partitions or [SlicePartition(start, start, 0)]


def message_partitions(
    messages: Sequence[tuple[int, int]], rows_per_partition: int
) -> list[MessagesPartition]:
    """Divide pairs of message id and token into partitions, in their order; at least one, maybe empty."""
    pieces = [
        messages[first : first + rows_per_partition] for first in range(0, len(messages), rows_per_partition)
    ]
    return [
        MessagesPartition(tuple(id_ for id_, _ in piece), tuple(token for _, token in piece))
        for piece in pieces or [[]]
    ]
