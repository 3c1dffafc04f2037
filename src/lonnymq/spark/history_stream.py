"""Streaming read of history: every row exactly once, or a clear error."""

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
from lonnymq.spark.batch_read import read_slice
from lonnymq.spark.database import make_client
from lonnymq.spark.idle_backoff import IdleBackoff
from lonnymq.spark.options import FollowOptions
from lonnymq.spark.partitions import BEGINNING, slice_partitions

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

# Spark compares offsets as JSON text, so the order of the keys matters.
Offset = dict[str, Any]
# How often an idle reader checks for a transaction that holds it back; one open for as long is logged.
BLOCKER_CHECK_S = 60.0

log = logging.getLogger("lonnymq.spark")


class HistoryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows positions (xid, id) below the oldest open transaction.

    Spark constructs readers that it never uses: nothing touches the database before it asks for an offset.
    """

    def __init__(self, options: FollowOptions) -> None:
        self._options = options
        self._opened: Queue | None = None
        self._before_xid: int | None = None
        self._idle = IdleBackoff()
        self._blocker_checked_at = time.monotonic()

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return a constant: Spark asks twice and logs neither answer, so it must not depend on the time."""
        return {"at": "latest" if self._options.is_latest else "earliest"}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop at what exists now: with writers still active, the query would never end."""
        self._before_xid = self._queue.caller.perform(queue_calls.horizon()).oldest

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return how far to read next; the database has made that position durable."""
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
            self._idle.wait()
            self._log_blocker()
            return start
        found = {"origin": origin, "xid": end.xid, "id": end.id}
        # Spark cannot pass a position as the start of the first batch, so the batch's end carries it.
        return found if position else {**found, "after": [after.xid, after.id]}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Divide the rows between two offsets into slices; raises if some of them are gone."""
        until = _position(end)
        if until is None:
            return slice_partitions(BEGINNING, [])
        begin = _position(start) or HistoryPosition(*end["after"])
        call = calls.slices(
            self._options.reader, self._origin(end), begin, until, self._options.read.rows_per_partition
        )
        return slice_partitions(begin, self._queue.caller.perform(call))

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of a slice; raises if some of them are gone."""
        return read_slice(self._options.read, partition)

    def commit(self, end: Offset) -> None:
        """Record that everything up to here has been processed, so that it may be dropped."""
        position = _position(end)
        if position is not None:
            self._queue.caller.perform(calls.done(self._options.reader, position))

    def stop(self) -> None:
        """Close the connection, if this process opened one."""
        if self._opened is not None:
            self._opened.close()

    def _log_blocker(self) -> None:
        if time.monotonic() - self._blocker_checked_at < BLOCKER_CHECK_S:
            return
        self._blocker_checked_at = time.monotonic()
        blocker = self._queue.caller.perform(history_calls.blocker())
        opened_before = datetime.now(UTC) - timedelta(seconds=BLOCKER_CHECK_S)
        if blocker is not None and blocker.since is not None and blocker.since <= opened_before:
            log.warning("an open transaction holds back the reading of history: %s", blocker)

    @property
    def _queue(self) -> "Queue":
        if self._opened is None:
            self._opened = make_client(self._options.read.connect)
        return self._opened

    def _origin(self, offset: Offset) -> str | None:
        return None if self._options.is_rebase else offset.get("origin")


def _position(offset: Offset) -> HistoryPosition | None:
    return HistoryPosition(offset["xid"], offset["id"]) if "xid" in offset else None
