"""Writing: tasks stage by COPY, and the driver publishes what winning attempts staged, in one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from lonnymq.calls import stream as calls
from lonnymq.errors import LonnyError
from lonnymq.spark.database import opened
from lonnymq.spark.options import Connect, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from lonnymq.client.sync.queue import Queue

# A transaction holds back vacuum, and readers of history: none lasts longer than this much takes.
COPY_BYTES = 64 * 2**20


@dataclass
class Staged(WriterCommitMessage):
    """What one attempt of a task staged: a part, under a name, and its rows."""

    publication: str
    part: str
    rows: int


class BatchWriter(DataSourceArrowWriter):
    """All or nothing; once per execution, or once per job if that has a name."""

    def __init__(self, options: WriteOptions) -> None:
        self._connect = options.connect
        # Made on the driver and carried to the tasks with this object.
        self._publication = options.job or f"spark {uuid4()}"

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Stage what a task has; every attempt does, and only one's will be published."""
        return stage(self._connect, self._publication, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish, or find that it was published; if the reply is lost, ask again."""
        with opened(self._connect) as queue:
            queue.caller.perform(calls.publish(self._publication, parts(messages)))
            prune(queue)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what was staged; what is published stays, whoever believes that it failed."""
        discard(self._connect, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Each batch once, by the number that Spark gives it."""

    def __init__(self, options: WriteOptions) -> None:
        self._connect = options.connect
        self._stream_id = options.stream_id

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        """Stage under the stream's name; that of its query unless it was given one."""
        return stage(self._connect, calls.publication_of(self._stream_id or query_id()), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish this batch, unless it is the last one again."""
        staged = require(messages)
        # Here nobody knows the query: the tasks did.
        stream = staged[0].publication.removeprefix(calls.publication_of(""))
        with opened(self._connect) as queue:
            queue.caller.perform(calls.publish_batch(stream, batchId, parts(messages)))
            prune(queue)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove what was staged; what is published stays."""
        discard(self._connect, messages)


def stage(connect: Connect, publication: str, batches: Iterator["pa.RecordBatch"]) -> Staged:
    """Copy batches into the stage as a part of its own, in bounded transactions."""
    from lonnymq.spark.copying import Copying

    part = uuid4()
    with opened(connect) as queue, Copying(queue, publication, part, COPY_BYTES) as copying:
        for batch in batches:
            copying.add(batch)
    return Staged(publication, str(part), copying.rows)


def require(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    """Return what all tasks staged."""
    staged = [message for message in messages if isinstance(message, Staged)]
    if len(staged) != len(messages) or not staged:
        raise LonnyError("a task has staged nothing: nothing was published")
    return staged


def parts(messages: Sequence[WriterCommitMessage | None]) -> dict[str, int]:
    """Return the parts and their rows, in the order of the partitions."""
    return {staged.part: staged.rows for staged in require(messages)}


def discard(connect: Connect, messages: Sequence[WriterCommitMessage | None]) -> None:
    staged = [message for message in messages if isinstance(message, Staged)]
    if staged:
        with opened(connect) as queue:
            queue.caller.perform(calls.discard(staged[0].publication, {one.part: one.rows for one in staged}))


def prune(queue: "Queue") -> None:
    """Remove what jobs that died have left behind, where the role may: a producer may not, a worker may."""
    # The job is published by now: nothing that fails here may make it look as if it were not.
    with suppress(LonnyError, psycopg.Error):
        queue.stage_prune()


def query_id() -> str:
    """Return the id of the query that this task is part of; it stays with the checkpoint."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    found = context.getLocalProperty("sql.streaming.queryId") if context else None
    if not found:
        raise LonnyError("this task is not part of a streaming query: give it a name by option stream_id")
    return str(found)
