"""Spark as a worker: each batch is a claim, completed when Spark has logged that the batch is done."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lonnymq.calls import claim as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, LonnyError
from lonnymq.spark import columns
from lonnymq.spark.database import arrow_schema, client, opened
from lonnymq.spark.idle import Idle
from lonnymq.spark.keeper import Keeper
from lonnymq.spark.options import ConsumeOptions
from lonnymq.spark.partitions import MessagesPartition, of_messages

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

Offset = dict[str, Any]
# Contents are read so many at a time, and fewer while they have more bytes than that.
READ_MESSAGES = 100
READ_BYTES = 16 * 2**20
BUSY_FOR_S = 30.0

log = logging.getLogger("lonnymq.spark")


class ConsumeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """At least once, by the same turns, caps and rates as any worker. An offset is a claim's id."""

    def __init__(self, options: ConsumeOptions) -> None:
        self._options = options
        self._opened: Queue | None = None
        self._keeper: Keeper | None = None
        # What this query may still take if it is to end; None: it goes on for ever.
        self._budget: int | None = None
        self._first: str | None = None
        self._plans: dict[str, list[MessagesPartition]] = {}
        self._idle = Idle()

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"claim": None}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take as many as are due now, and end: producers may go on."""
        self._budget = self._queue.caller.perform(calls.backlog())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Complete the batch that Spark has just logged as done, then claim the next.

        Completing waits for nothing else: a channel at its cap moves on only then, and Spark may never
        say commit() for a last batch.
        """
        before = start["claim"]
        if before is not None:
            self._complete(before)
        elif self._first is not None:
            return {"claim": self._first}
        most = self._options.max_messages
        if isinstance(limit, ReadMaxRows):
            most = min(most, limit.max_rows)
        if self._budget is not None:
            most = min(most, self._budget)
        if most < 1:
            return start
        call = calls.take(
            before, self._options.consumer, self._options.is_alone, most, 1000 * self._options.lease_s
        )
        claim = self._queue.caller.perform(call)
        if claim.id is None:
            self._idle.rest()
            return start
        if self._budget is not None:
            self._budget -= claim.messages
        if before is None:
            self._first = claim.id
        self._keep(claim.id)
        return {"claim": claim.id}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Decide once which messages this batch has; after a restart, those that are still held."""
        claim = end["claim"]
        if claim is None or claim == start["claim"]:
            return of_messages([], 1)
        if claim not in self._plans:
            held = self._queue.caller.perform(calls.messages(claim, 1000 * self._options.lease_s))
            self._plans = {claim: of_messages(held, self._options.rows_per_partition)}
            self._keep(claim)
        return self._plans[claim]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Read messages under their tokens; raise if one is somebody else's by now."""
        with opened(self._options.connect) as queue:
            place, most = 0, 1
            while place < len(partition.ids):
                chosen = slice(place, place + most)
                batch = _batch(
                    queue.caller.perform(calls.read(partition.ids[chosen], partition.tokens[chosen]))
                )
                yield batch
                place += most
                most = max(most // 2, 1) if batch.nbytes > READ_BYTES else min(4 * most, READ_MESSAGES)

    def commit(self, end: Offset) -> None:
        """Complete, unless that is done."""
        if end["claim"] is not None:
            self._complete(end["claim"])

    def stop(self) -> None:
        """Close the connections, if this process had any."""
        if self._opened is not None:
            self._opened.close()

    def _complete(self, claim: str) -> None:
        for pause_s in Backoff(first_s=0.01, most_s=0.5).pauses(for_s=BUSY_FOR_S):
            outcome, lost = self._queue.caller.perform(calls.complete(claim))
            if outcome == "done":
                break
            time.sleep(pause_s)
        else:
            raise Busy(f"messages of claim {claim} are locked by another transaction")
        if self._keeper is not None:
            self._keeper.end(claim)
        if lost:
            log.warning("%s messages of claim %s lost their lease, and will come again", lost, claim)

    def _keep(self, claim: str) -> None:
        if self._keeper is None:
            self._keeper = Keeper(self._queue, self._options.lease_s, self._options.max_claim_s)
        self._keeper.keep(claim)

    @property
    def _queue(self) -> "Queue":
        if self._opened is None:
            self._opened = client(self._options.connect)
        return self._opened


def _batch(rows: list[tuple[Any, ...]]) -> "pa.RecordBatch":
    import pyarrow as pa

    lost = [row[0] for row in rows if row[1] == "lease_lost"]
    if lost:
        raise LonnyError(
            f"the leases of {len(lost)} messages ended during this batch (message {lost[0]}): they come"
            " again; restart the query, and give it a longer lease_s if this is often"
        )
    # A message that was cancelled meanwhile is nobody's any more.
    held = [(row[0], *row[2:5], *map(_microseconds, row[5:8]), *row[8:]) for row in rows if row[1] == "held"]
    schema = arrow_schema(columns.CONSUMED)
    values = list(zip(*held, strict=True)) or [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema
    )


def _microseconds(milliseconds: int) -> int:
    return max(min(milliseconds, columns.LATEST_MS), columns.EARLIEST_MS) * 1000
