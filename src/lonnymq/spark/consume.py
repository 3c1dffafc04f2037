"""Spark as a worker: each batch is a claim, completed once Spark has logged the batch as done."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lonnymq.calls import claim as calls
from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy, InvalidArgument, LonnyError
from lonnymq.spark import columns
from lonnymq.spark.claim_heartbeat import ClaimHeartbeat
from lonnymq.spark.database import arrow_schema, make_client, open_queue
from lonnymq.spark.idle_backoff import IdleBackoff
from lonnymq.spark.options import ConsumeOptions
from lonnymq.spark.partitions import MessagesPartition, message_partitions

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

Offset = dict[str, Any]
# Messages per read; fewer while a read returns more than READ_BYTES.
READ_MESSAGES = 100
READ_BYTES = 16 * 2**20
# How long completing a claim is retried while another transaction has its messages locked.
BUSY_FOR_S = 30.0

# The only trigger that reads without a limit. After its only batch Spark calls nothing here, so nobody would
# complete the batch's messages.
REFUSED_ONCE = (
    "trigger(once=True) cannot consume, because Spark does not tell the source that the batch is done, so its"
    " messages would be delivered again: use trigger(availableNow=True), which takes what is due now and then"
    " ends"
)

log = logging.getLogger("lonnymq.spark")


class ConsumeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Delivers at least once, by the same turns, caps and rates as any worker. Offsets are ids of claims."""

    def __init__(self, options: ConsumeOptions) -> None:
        self._options = options
        self._opened: Queue | None = None
        self._heartbeat: ClaimHeartbeat | None = None
        # How many messages an availableNow query may still take; None: no limit.
        self._budget: int | None = None
        self._first_claim: str | None = None
        self._partitions: dict[str, list[MessagesPartition]] = {}
        self._idle = IdleBackoff()

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"claim": None}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_messages)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take as many messages as are due now, then end, even if producers continue."""
        self._budget = self._queue.caller.perform(calls.backlog())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Complete the batch that Spark has just logged as done, then claim the next.

        This does not wait for commit(): until the claim is complete, a channel at its cap gets no more
        messages, and Spark may never call commit() for the last batch.
        """
        if not isinstance(limit, ReadMaxRows):
            raise InvalidArgument(REFUSED_ONCE)
        previous = start["claim"]
        if previous is not None:
            self._complete(previous)
        elif self._first_claim is not None:
            return {"claim": self._first_claim}
        most = min(self._options.max_messages, limit.max_rows)
        if self._budget is not None:
            most = min(most, self._budget)
        if most < 1:
            return start
        call = calls.take(
            previous, self._options.consumer, self._options.is_named, most, 1000 * self._options.lease_s
        )
        claim = self._queue.caller.perform(call)
        if claim.id is None:
            self._idle.wait()
            return start
        if self._budget is not None:
            self._budget -= claim.messages
        if previous is None:
            self._first_claim = claim.id
        self._start_heartbeat(claim.id)
        return {"claim": claim.id}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Decide once which messages are in this batch; after a restart, those whose leases still hold."""
        claim = end["claim"]
        if claim is None or claim == start["claim"]:
            return message_partitions([], 1)
        if claim not in self._partitions:
            held = self._queue.caller.perform(calls.messages(claim, 1000 * self._options.lease_s))
            self._partitions = {claim: message_partitions(held, self._options.rows_per_partition)}
            self._start_heartbeat(claim)
        return self._partitions[claim]

    def read(self, partition: Any) -> Iterator["pa.RecordBatch"]:
        """Yield the messages; raises if another worker has taken one of them meanwhile."""
        with open_queue(self._options.connect) as queue:
            first, most = 0, 1
            while first < len(partition.ids):
                chosen = slice(first, first + most)
                batch = _record_batch(
                    queue.caller.perform(calls.read(partition.ids[chosen], partition.tokens[chosen]))
                )
                yield batch
                first += most
                most = max(most // 2, 1) if batch.nbytes > READ_BYTES else min(4 * most, READ_MESSAGES)

    def commit(self, end: Offset) -> None:
        """Complete the claim, unless that is already done."""
        if end["claim"] is not None:
            self._complete(end["claim"])

    def stop(self) -> None:
        """Close the connections, if this process opened any."""
        if self._opened is not None:
            self._opened.close()

    def _complete(self, claim: str) -> None:
        complete_claim(self._queue, claim)
        if self._heartbeat is not None:
            self._heartbeat.stop(claim)

    def _start_heartbeat(self, claim: str) -> None:
        if self._heartbeat is None:
            self._heartbeat = ClaimHeartbeat(self._queue, self._options.lease_s, self._options.max_claim_s)
        self._heartbeat.start(claim)

    @property
    def _queue(self) -> "Queue":
        if self._opened is None:
            self._opened = make_client(self._options.connect)
        return self._opened


def complete_claim(queue: "Queue", claim: str) -> None:
    """Complete the messages of a claim; retry while another transaction has some of them locked."""
    for pause_s in Backoff(first_s=0.01, max_s=0.5).pauses(for_s=BUSY_FOR_S):
        outcome, lost = queue.caller.perform(calls.complete(claim))
        if outcome == "done":
            break
        time.sleep(pause_s)
    else:
        raise Busy(f"claim {claim} could not be completed: another transaction has its messages locked")
    if lost:
        log.warning("%s messages of claim %s lost their lease and will be delivered again", lost, claim)


def _record_batch(rows: list[tuple[Any, ...]]) -> "pa.RecordBatch":
    import pyarrow as pa

    lost = [row[0] for row in rows if row[1] == "lease_lost"]
    if lost:
        raise LonnyError(
            f"{len(lost)} messages lost their lease during this batch (the first is {lost[0]}) and will be"
            " delivered again: restart the query, with a longer lease_s if this happens often"
        )
    # Messages that were cancelled meanwhile are left out.
    held = [(row[0], *row[2:5], *map(_microseconds, row[5:8]), *row[8:]) for row in rows if row[1] == "held"]
    schema = arrow_schema(columns.CONSUMED_MESSAGE)
    values = list(zip(*held, strict=True)) or [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema
    )


def _microseconds(milliseconds: int) -> int:
    return max(min(milliseconds, columns.LATEST_MS), columns.EARLIEST_MS) * 1000
