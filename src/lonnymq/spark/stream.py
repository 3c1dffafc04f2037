"""History as a stream: nothing missed, nothing twice, or a clear error."""

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lonnymq.calls import follow as calls
from lonnymq.calls import history as history_calls
from lonnymq.calls import queue as queue_calls
from lonnymq.model import HistoryPosition
from lonnymq.spark.database import client
from lonnymq.spark.idle import Idle
from lonnymq.spark.options import FollowOptions
from lonnymq.spark.partitions import BEGINNING, of_slices
from lonnymq.spark.reader import read_slice

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

# Spark compares offsets as text: the order of the keys is part of it.
Offset = dict[str, Any]
# A transaction that keeps an idle reader waiting for longer is named in the log, as often.
BLOCKED_FOR_S = 60.0

log = logging.getLogger("lonnymq.spark")


class HistoryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows (xid, id) below the oldest transaction. No side effects until Spark asks for an offset."""

    def __init__(self, options: FollowOptions) -> None:
        self._options = options
        self._opened: Queue | None = None
        self._before_xid: int | None = None
        self._idle = Idle()
        self._looked_at = time.monotonic()

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return a word: Spark asks twice and logs neither, so it must not depend on when."""
        return {"at": "latest" if self._options.is_latest else "earliest"}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now: those who write meanwhile would keep this query from its end."""
        self._before_xid = self._queue.caller.perform(queue_calls.horizon()).oldest

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return how far to read next, once that is on the database's disk."""
        position = _position(start)
        call = calls.follow(
            self._options.reader,
            self._origin(start),
            position,
            self._options.is_latest,
            limit.max_rows if isinstance(limit, ReadMaxRows) else None,
            self._before_xid,
        )
        origin, after, end = self._queue.caller.perform(call)
        if end is None or end == position:
            self._idle.rest()
            self._tell_who_blocks()
            return start
        found = {"origin": origin, "xid": end.xid, "id": end.id}
        # Spark has no position to give as the start of the first batch: its end tells where it begins.
        return found if position else {**found, "after": [after.xid, after.id]}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Cut what is between, if it is all there."""
        until = _position(end)
        if until is None:
            return of_slices(BEGINNING, [])
        begin = _position(start) or HistoryPosition(*end["after"])
        call = calls.slices(
            self._options.reader, self._origin(end), begin, until, self._options.read.rows_per_partition
        )
        return of_slices(begin, self._queue.caller.perform(call))

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Read a slice, and all of it."""
        return read_slice(self._options.read, partition)

    def commit(self, end: Offset) -> None:
        """Tell that all before is done, so that it may be dropped."""
        position = _position(end)
        if position is not None:
            self._queue.caller.perform(calls.done(self._options.reader, position))

    def stop(self) -> None:
        """Close the connection, if this process had one."""
        if self._opened is not None:
            self._opened.close()

    def _tell_who_blocks(self) -> None:
        if time.monotonic() - self._looked_at < BLOCKED_FOR_S:
            return
        self._looked_at = time.monotonic()
        found = self._queue.caller.perform(history_calls.blocker())
        long_ago = datetime.now(UTC) - timedelta(seconds=BLOCKED_FOR_S)
        if found is not None and found.since is not None and found.since <= long_ago:
            log.warning("history waits for an open transaction: %s", found)

    @property
    def _queue(self) -> "Queue":
        if self._opened is None:
            self._opened = client(self._options.read.connect)
        return self._opened

    def _origin(self, offset: Offset) -> str | None:
        return None if self._options.is_rebase else offset.get("origin")


def _position(offset: Offset) -> HistoryPosition | None:
    return HistoryPosition(offset["xid"], offset["id"]) if "xid" in offset else None
