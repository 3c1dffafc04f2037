"""From the queue's history to the lake: each attempt once, whatever dies in between.

Spark's checkpoint knows how far was read, and the lake how far was written, in the same commit as the rows.
A batch that the lake has is skipped; one that does not follow is an error.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lonnymq.client.sync.queue import Queue
from lonnymq.errors import LonnyError
from lonnymq.model import POLICY_FIELDS
from lonnymq.pipeline import schemas
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.policies import LAST_DAY, in_force
from lonnymq.pipeline.source import Say, Source, silent

WRITER = "archive"
# Which stream has written: another one would begin at its own beginning, and bring rows twice.
STREAM = "archive stream"
RULES = ("channel", *POLICY_FIELDS)

# Spark gives the process that reads ten seconds to start, which a busy machine may exceed; a run may be
# repeated.
LATE_WORKER = "Python worker failed to connect back"
RETRIES = 3
# A transaction that is open for longer is worth a word.
LONG = timedelta(seconds=10)


class ArchiveFailed(LonnyError):
    """The stream ended with an error; what was archived before stays, and the next run goes on."""


@dataclass(frozen=True)
class Archived:
    """What a run added, and which partitions of history it dropped."""

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
    say: Say = silent,
) -> Archived:
    """Bring all that has ended to the lake; then, if `keep` is given, drop older history that is archived."""
    written = _follow(spark, source, lake, checkpoint or f"{lake.path}/_checkpoints/archive", say)
    _say_who_blocks(source, say)
    snapshot(spark, source, lake, datetime.now(UTC))
    if keep is None:
        return Archived(sum(written), len(written))
    with Queue(source.dsn, schema=source.schema) as queue:
        # Readers say in the database how far they are done; what they are not done with stays.
        pruned = queue.history.prune(keep)
    return Archived(sum(written), len(written), tuple(pruned))


def _follow(spark: SparkSession, source: Source, lake: Lake, checkpoint: str, say: Say) -> list[int]:
    written: list[int] = []

    def add(batch: DataFrame, number: int) -> None:
        rows = append(lake, batch, stream_of(batch), number)
        if rows is None:
            say(f"batch {number} was archived before")
        else:
            written.append(rows)
            say(f"batch {number}, attempts: {rows:,}, {sum(written):,} in all")

    options = source.options(table="history", reader=source.reader, max_rows=str(source.max_rows))
    history = spark.readStream.format("lonnymq").options(**options).load()
    for is_last in (*(False,) * RETRIES, True):
        query = (
            history.writeStream.foreachBatch(add)
            .queryName("lonnymq archive")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if is_last or LATE_WORKER not in str(error):
                raise ArchiveFailed(f"the archive stopped: {_first_words(error)}") from error
            say("a Python process was slow to start; once more")
        else:
            break
    return written


def _say_who_blocks(source: Source, say: Say) -> None:
    """Attempts that ended and are not in the lake wait for somebody; say for whom."""
    with Queue(source.dsn, schema=source.schema) as queue:
        blocker = queue.history.blocker()
    if blocker is not None and blocker.since is not None and datetime.now(UTC) - blocker.since > LONG:
        say(f"what has ended since waits for an open transaction: {blocker}")


def append(lake: Lake, batch: DataFrame, stream: str, number: int) -> int | None:
    """Add one batch of a stream to the lake's attempts; None if it was there."""
    owner = Batch(STREAM, int(hashlib.sha256(stream.encode()).hexdigest()[:15], 16))
    return lake.attempts.append(schemas.attempts(batch), Batch(WRITER, number), owner)


def stream_of(batch: DataFrame) -> str:
    """The id of the query that a batch belongs to; it is kept in the checkpoint."""
    name: str | None = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not name:
        raise ArchiveFailed("Spark did not say which stream this batch belongs to")
    return name


def snapshot(spark: SparkSession, source: Source, lake: Lake, now: datetime) -> None:
    """Keep what channels may, as of today, and what waits now."""

    def table(name: str, columns: str) -> DataFrame:
        return spark.read.format("lonnymq").options(**source.options(table=name, columns=columns)).load()

    number = round(now.timestamp() * 1000)
    taken = f.timestamp_millis(f.lit(number))
    rules = table("channel", ",".join(RULES)).withColumn("day", schemas.day_of(taken))
    _keep_policies(lake, schemas.conformed(rules, schemas.POLICIES), now, number, spark)
    due = f.greatest("created_at", "dequeue_at")
    second = f.timestamp_seconds(f.floor(f.unix_millis(due) / 1000))
    waiting = (
        table("message", "channel,created_at,dequeue_at,leased_at")
        .where(due <= taken)
        .groupBy("channel", second.alias("due_at"))
        .agg(f.count("*").alias("messages"), f.count("leased_at").alias("leased"))
        .withColumn("taken_at", taken)
        .withColumn("day", schemas.day_of("taken_at"))
    )
    lake.waiting.replace(schemas.conformed(waiting, schemas.WAITING), None, [Batch(WRITER, number)])


def _keep_policies(lake: Lake, rules: DataFrame, now: datetime, number: int, spark: SparkSession) -> None:
    """Only if one has changed: days are analysed again if their policies are newer."""
    latest = in_force(lake.policies.read(spark)).where(f.col("until_day") == f.lit(LAST_DAY).cast("date"))
    names = [name for name in RULES if name != "is_paused"]
    if rules.select(names).exceptAll(latest.select(names)).isEmpty():
        return
    lake.policies.replace(rules, [now.astimezone(UTC).date()], [Batch(WRITER, number)])


def _first_words(error: Any) -> str:
    """What went wrong, without the stack of two languages and whatever it may show."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if "lonnymq." in line or "Error" in line]
    return (lines[-1] if lines else text.splitlines()[0])[:500]
