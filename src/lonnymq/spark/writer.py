"""Tasks copy rows into the stage; the driver publishes those of winning attempts in one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from lonnymq.calls import stream as calls
from lonnymq.errors import LonnyError
from lonnymq.spark.database import open_queue
from lonnymq.spark.options import ConnectionOptions, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

# An open transaction holds back vacuum and readers of history: each COPY commits after this many bytes.
TRANSACTION_BYTES = 64 * 2**20


@dataclass
class StagedPart(WriterCommitMessage):
    """The rows that one attempt of a task staged, and the publication they are for."""

    publication: str
    part: str
    rows: int


class BatchWriter(DataSourceArrowWriter):
    """Publishes all rows or none, once per execution, or once per `job` if that has a name."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        # Made on the driver and sent to the tasks with this object.
        self._publication = options.job or f"spark {uuid4()}"

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Stage the rows of a task; of several attempts, Spark chooses the one that is published."""
        return stage(self._options, self._publication, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish, unless that is already done; a lost reply is therefore safe to retry."""
        with open_queue(self._options.connect) as queue:
            queue.caller.perform(calls.publish(self._publication, rows_by_part(messages)))
            prune_stage(queue)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the staged rows; published messages stay, even if Spark believes that publishing failed."""
        discard(self._options.connect, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Publishes each batch once, identified by the number that Spark gives it."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Stage under the stream's name, which is `stream_id` or the id of the query."""
        return stage(self._options, calls.publication_of(self._options.stream_id or query_id()), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish this batch, unless it is a repetition of the last one."""
        staged = staged_parts(messages)
        # Only tasks know the id of the query, so it is taken from what they staged.
        stream = staged[0].publication.removeprefix(calls.publication_of(""))
        with open_queue(self._options.connect) as queue:
            queue.caller.perform(calls.publish_batch(stream, batchId, rows_by_part(messages)))
            prune_stage(queue)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete the staged rows; published messages stay."""
        discard(self._options.connect, messages)


def stage(options: WriteOptions, publication: str, batches: Iterator["pa.RecordBatch"]) -> StagedPart:
    """Copy batches into the stage as a new part, in bounded transactions."""
    from lonnymq.spark.encode import Encoder
    from lonnymq.spark.stage_copy import StageCopy

    part = uuid4()
    encoder = Encoder(publication, part, allows_any_time=options.allows_any_time)
    with open_queue(options.connect) as queue, StageCopy(queue, encoder, TRANSACTION_BYTES) as stage_copy:
        for batch in batches:
            stage_copy.add(batch)
    return StagedPart(publication, str(part), stage_copy.rows)


def staged_parts(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPart]:
    """Return the part that each task staged; raise if one is missing."""
    staged = [message for message in messages if isinstance(message, StagedPart)]
    if len(staged) != len(messages) or not staged:
        raise LonnyError(
            "nothing was published, because Spark reported no result for a task: run the job again"
        )
    return staged


def rows_by_part(messages: Sequence[WriterCommitMessage | None]) -> dict[str, int]:
    """Return the number of rows of each part, in the order of the partitions."""
    return {staged.part: staged.rows for staged in staged_parts(messages)}


def discard(connect: ConnectionOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    staged = [message for message in messages if isinstance(message, StagedPart)]
    if staged:
        with open_queue(connect) as queue:
            queue.caller.perform(calls.discard(staged[0].publication, {one.part: one.rows for one in staged}))


def prune_stage(queue: "Queue") -> None:
    """Delete what jobs that died left in the stage, if the role may: a worker may, a producer may not."""
    # The job is already published: a failure here must not make it look as if it were not.
    with suppress(LonnyError, psycopg.Error):
        queue.stage_prune()


def query_id() -> str:
    """Return the id of this task's streaming query, which is kept in the checkpoint."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    found = context.getLocalProperty("sql.streaming.queryId") if context else None
    if not found:
        raise LonnyError("this task belongs to no streaming query: name the stream with the option stream_id")
    return str(found)
