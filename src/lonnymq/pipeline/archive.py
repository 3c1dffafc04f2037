"""Copies history from the queue to the lake: each attempt exactly once, whatever fails in between.

The lake records how far it has the history, in the same commit as the rows. Of a batch that Spark reads
again, only rows after that position are added; a batch that begins after it is an error. So nothing depends
on Spark's checkpoint, which a power failure may leave as it was minutes before.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lonnymq.client.sync.queue import Queue
from lonnymq.errors import LonnyError
from lonnymq.model import POLICY_FIELDS
from lonnymq.pipeline import schemas
from lonnymq.pipeline.checkpoint import bounds_of, set_aside_if_damaged
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.lake.commit import HistorySpan, NumberedAddition, hash_of, last_position
from lonnymq.pipeline.lake.reading import can_open
from lonnymq.pipeline.lake.storage import is_local
from lonnymq.pipeline.policies import LAST_DAY, policy_periods
from lonnymq.pipeline.source import OnProgress, Source, ignore_progress, require_classic
from lonnymq.pipeline.spark_errors import summary_of
from lonnymq.spark.options import ConnectionOptions
from lonnymq.spark.query_progress import report_done

WRITER = "archive"
QUERY_NAME = "lonnymq archive"
# Identified the stream that has written, when a lake did not yet record its position.
STREAM = "archive stream"
POLICY_COLUMNS = ("channel", *POLICY_FIELDS)

# Spark allows the process that reads ten seconds to start. A busy machine may need longer, so the run is
# retried.
LATE_WORKER = "Python worker failed to connect back"
RETRIES = 3
# Another query has written to the same checkpoint.
CONCURRENT_UPDATES = ("CONCURRENT_STREAM_LOG_UPDATE", "streaming queries are concurrently using")
RUNS_ALREADY = (
    "another archive is writing to {}: run one at a time."
    " Attempts that both have archived are in the lake once"
)
LOCK_NAME = "_archive.lock"
# An open transaction that holds history back for longer is reported.
LONG_TRANSACTION = timedelta(seconds=10)


class ArchiveFailed(LonnyError):
    """The stream failed; what was archived stays in the lake, and the next run continues."""


@dataclass(frozen=True)
class ArchiveResult:
    """The attempts that a run added, and the partitions of history that it dropped."""

    rows: int
    batches: int
    pruned: tuple[str, ...] = ()


def archive(
    spark: SparkSession,
    source: Source,
    lake: Lake,
    *,
    checkpoint: str | None = None,
    keep: timedelta | None = None,
    on_progress: OnProgress = ignore_progress,
) -> ArchiveResult:
    """Copy all finished attempts to the lake; then, with `keep`, drop older history that is archived."""
    require_classic(spark, "archive", "writes the batches of its stream in functions of this process")
    with only_archive_of(lake):
        return archive_new(spark, source, lake, checkpoint=checkpoint, keep=keep, on_progress=on_progress)


def archive_new(
    spark: SparkSession,
    source: Source,
    lake: Lake,
    *,
    checkpoint: str | None,
    keep: timedelta | None,
    on_progress: OnProgress,
) -> ArchiveResult:
    """Like `archive`, for a caller that is the `only_archive_of` the lake."""
    checkpoint = checkpoint or f"{lake.path}/_checkpoints/archive"
    if not can_open(spark, checkpoint):
        raise ArchiveFailed(
            f"Spark has no library to write {checkpoint}: name a directory for the checkpoint that outlives"
            " this process, or start Spark with such a library"
        )
    written = _run_stream(spark, source, lake, checkpoint, on_progress)
    _report_blocker(source, on_progress)
    save_snapshot(spark, source, lake, datetime.now(UTC))
    if keep is None:
        return ArchiveResult(sum(written), len(written))
    with Queue(source.dsn, schema=source.schema) as queue:
        # Readers record their progress in the database; days that one of them still needs are kept.
        pruned = queue.history.prune(keep)
    return ArchiveResult(sum(written), len(written), tuple(pruned))


@contextmanager
def only_archive_of(lake: Lake) -> Iterator[None]:
    """Refuse to start while another archive writes to a local lake; elsewhere the commits conflict."""
    if not is_local(lake.path):
        yield
        return
    root = Path(lake.path)
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ArchiveFailed(RUNS_ALREADY.format(lake.path)) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _run_stream(
    spark: SparkSession, source: Source, lake: Lake, checkpoint: str, on_progress: OnProgress
) -> list[int]:
    written: list[int] = []

    def add(batch: DataFrame, number: int) -> None:
        rows = append(lake, batch, checkpoint, number)
        if rows is None:
            on_progress(f"batch {number} was archived before")
        else:
            written.append(rows)
            on_progress(f"batch {number}: {rows:,} attempts, {sum(written):,} in total")

    last_batch = lake.attempts.last_batch
    # Without a position, the lake of an earlier version depends on its checkpoint.
    has_position = last_batch(WRITER) is None or last_position(last_batch, WRITER) is not None
    if has_position and (renamed := set_aside_if_damaged(checkpoint)):
        on_progress(renamed)
    rebase = str(source.rebase).lower()
    options = source.options(
        table="history", reader=source.reader, max_rows=str(source.max_rows), rebase=rebase
    )
    history = spark.readStream.format("lonnymq").options(**options).load()
    for is_last in (*(False,) * RETRIES, True):
        query = (
            history.writeStream.foreachBatch(add)
            .queryName(QUERY_NAME)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            report_done(query, ConnectionOptions(source.dsn, source.schema), source.reader)
        except StreamingQueryException as error:
            if any(text in str(error) for text in CONCURRENT_UPDATES):
                raise ArchiveFailed(RUNS_ALREADY.format(lake.path)) from error
            if is_last or LATE_WORKER not in str(error):
                raise ArchiveFailed(f"the archive stopped: {summary_of(error)}") from error
            on_progress("a Python process was slow to start; retrying")
        else:
            break
    return written


def _report_blocker(source: Source, on_progress: OnProgress) -> None:
    """Report the open transaction, if any, that keeps finished attempts from being archived."""
    with Queue(source.dsn, schema=source.schema) as queue:
        blocker = queue.history.blocker()
    if (
        blocker is not None
        and blocker.since is not None
        and datetime.now(UTC) - blocker.since > LONG_TRANSACTION
    ):
        on_progress(f"an open transaction keeps later attempts from being archived: {blocker}")


def append(lake: Lake, batch: DataFrame, checkpoint: str, number: int) -> int | None:
    """Add what the lake lacks of a stream's batch; return how many rows, or None if it has them all."""
    bounds = bounds_of(batch.sparkSession, checkpoint, number)
    if bounds is None:
        return 0
    numbered = NumberedAddition(Batch(WRITER, number), Batch(STREAM, hash_of(stream_id(batch))))
    span = HistorySpan(WRITER, bounds.origin, bounds.start, bounds.end, bounds.is_first, numbered)
    return lake.attempts.add(schemas.attempts_from_history(batch), span)


def stream_id(batch: DataFrame) -> str:
    """Return the id of the query that a batch belongs to; it is kept in the checkpoint."""
    name: str | None = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not name:
        raise ArchiveFailed("Spark did not provide the id of the stream that this batch belongs to")
    return name


def save_snapshot(spark: SparkSession, source: Source, lake: Lake, now: datetime) -> None:
    """Save the channels' policies as of today, and the messages that wait now."""

    def read_table(name: str, columns: str) -> DataFrame:
        return spark.read.format("lonnymq").options(**source.options(table=name, columns=columns)).load()

    number = round(now.timestamp() * 1000)
    taken = f.timestamp_millis(f.lit(number))
    policies = read_table("channel", ",".join(POLICY_COLUMNS)).withColumn("day", schemas.day_of(taken))
    _save_policies(lake, schemas.conform(policies, schemas.POLICIES), now, number, spark)
    due = f.greatest("created_at", "dequeue_at")
    second = f.timestamp_seconds(f.floor(f.unix_millis(due) / 1000))
    waiting = (
        read_table("message", "channel,created_at,dequeue_at,leased_at")
        .where(due <= taken)
        .groupBy("channel", second.alias("due_at"))
        .agg(f.count("*").alias("messages"), f.count("leased_at").alias("leased"))
        .withColumn("taken_at", taken)
        .withColumn("day", schemas.day_of("taken_at"))
    )
    lake.waiting.replace(schemas.conform(waiting, schemas.WAITING), None, [Batch(WRITER, number)])


def _save_policies(lake: Lake, policies: DataFrame, now: datetime, number: int, spark: SparkSession) -> None:
    """Save the policies if one has changed; days with newer policies are analysed again."""
    latest = policy_periods(lake.policies.read(spark)).where(
        f.col("until_day") == f.lit(LAST_DAY).cast("date")
    )
    names = [name for name in POLICY_COLUMNS if name != "is_paused"]
    if policies.select(names).exceptAll(latest.select(names)).isEmpty():
        return
    lake.policies.replace(policies, [now.astimezone(UTC).date()], [Batch(WRITER, number)])
