"""How a read is cut into tasks. Values only: they travel to the executors."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lonnymq.model import HistoryPosition, HistorySlice

BEGINNING = HistoryPosition(0, 0)


@dataclass
class SlicePartition(InputPartition):
    """A slice of history: after `start`, up to `end`, and so many rows."""

    start: HistoryPosition
    end: HistoryPosition
    rows: int


@dataclass
class MessagesPartition(InputPartition):
    """Messages of a claim, under their tokens."""

    ids: tuple[int, ...]
    tokens: tuple[int, ...]


def of_slices(start: HistoryPosition, slices: list[HistorySlice]) -> list[SlicePartition]:
    """Return a partition for each slice; one that is empty if there is none, since Spark wants one."""
    made = []
    for one in slices:
        made.append(SlicePartition(start, one.end, one.rows))
        start = one.end
    return made or [SlicePartition(start, start, 0)]


def of_messages(messages: Sequence[tuple[int, int]], rows_each: int) -> list[MessagesPartition]:
    """Return partitions of messages and their tokens, in their order."""
    pieces = [messages[place : place + rows_each] for place in range(0, len(messages), rows_each)]
    return [
        MessagesPartition(tuple(id_ for id_, _ in piece), tuple(token for _, token in piece))
        for piece in pieces or [[]]
    ]
