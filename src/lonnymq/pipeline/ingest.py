"""From files to the queue: Parquet, CSV or JSON lines; what cannot become a message goes to a side table."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from lonnymq.errors import InvalidArgument, invalid
from lonnymq.pipeline import schemas
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.source import Say, Source, silent
from lonnymq.spark.source import activate

# A line that could not be parsed, and where it was.
CORRUPT, FILE = "_corrupt_record", "_source_file"
LONGEST_NAME = 255
# When a message is due: one of these at most.
DUE = ("dequeue_at", "delay_ms", "priority")
OPTIONAL = (*DUE, "key")
LONGEST_DELAY_MS = 3_155_760_000_000
WRITER = "ingest"


class FileFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """Which columns make a message. Without `content`, all others together do, as one JSON object."""

    channel: str = "channel"
    content: str | None = None
    dequeue_at: str | None = None
    delay_ms: str | None = None
    priority: str | None = None
    key: str | None = None
    # All rows go to one channel, whatever their columns.
    to_channel: str | None = None
    max_content_bytes: int | None = None


@dataclass(frozen=True)
class Ingested:
    """The job's name, under which it happens once, and what became of the rows."""

    job: str
    accepted: int
    rejected: int


def ingest(
    spark: SparkSession,
    paths: Sequence[str],
    source: Source,
    lake: Lake,
    *,
    form: FileFormat | None = None,
    mapping: Mapping | None = None,
    job: str | None = None,
    say: Say = silent,
) -> Ingested:
    """Make messages of all rows of the files, at once and once per job."""
    mapping = mapping or Mapping()
    rows = read(spark, paths, form or format_of(paths))
    accepted, rejected = checked(rows, mapping)
    job = job or job_of(rows, mapping)
    # First what is refused: a job that was cut off between the two is repeated, and both happen once.
    day = schemas.day_of(f.timestamp_millis(f.lit(round(datetime.now(UTC).timestamp() * 1000))))
    refused = rejected.withColumn("job", f.lit(job)).withColumn("day", day)
    writer = Batch(f"{WRITER} {job}", 0)
    lake.rejected.append(schemas.conformed(refused, schemas.REJECTED), writer)
    bad = rejected.count()
    say(f"rows rejected: {bad:,}" + (f", see {lake.rejected.path}" if bad else ""))
    good = accepted.count()
    say(f"rows sent to the queue as job {job!r}: {good:,}")
    activate(spark)
    accepted.write.format("lonnymq").options(**source.options(job=job)).mode("append").save()
    return Ingested(job, good, bad)


def format_of(paths: Sequence[str]) -> FileFormat:
    """By the files' names."""
    endings = {path.rstrip("/").rpartition(".")[2].lower() for path in paths}
    kinds = {"parquet": FileFormat.PARQUET, "csv": FileFormat.CSV}
    kinds |= dict.fromkeys(("json", "jsonl", "ndjson"), FileFormat.JSON)
    if len(endings) != 1 or (ending := endings.pop()) not in kinds:
        raise invalid("paths", list(paths), "files of one kind, .parquet, .csv or .json; or say their format")
    return kinds[ending]


def read(spark: SparkSession, paths: Sequence[str], form: FileFormat) -> DataFrame:
    """The rows as they are; a line that cannot be parsed is a row, too."""
    if not paths:
        raise invalid("paths", paths, "at least one file")
    chosen = list(paths)
    if form is FileFormat.PARQUET:
        rows = spark.read.parquet(*chosen).withColumn(CORRUPT, f.lit(None).cast("string"))
    elif form is FileFormat.CSV:
        # Words stay words: an id with leading zeros is not a number.
        # Quotes are doubled in quotes, as everybody but Spark has it.
        options = {
            "header": "true",
            "escape": '"',
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
        }
        names = spark.read.options(**options).csv(chosen).columns
        fields = [StructField(name, StringType()) for name in (*names, CORRUPT)]
        rows = spark.read.schema(StructType(fields)).options(**options).csv(chosen)
    else:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        found = spark.read.options(**options).json(chosen).schema
        if CORRUPT not in found.names:
            found = found.add(CORRUPT, StringType())
        rows = spark.read.schema(found).options(**options).json(chosen)
    return rows.withColumn(FILE, f.input_file_name())


def checked(rows: DataFrame, mapping: Mapping) -> tuple[DataFrame, DataFrame]:
    """Messages to be, and rows that cannot be one, each with its reason."""
    require(rows, mapping)
    told = _with_parts(rows, mapping)
    reason = _reason(mapping)
    parts = ["channel", "content", *(name for name in OPTIONAL if getattr(mapping, name))]
    accepted = told.where(reason.isNull()).select(*(f.col(f"part.{name}") for name in parts))
    plain = [name for name in rows.columns if name not in (CORRUPT, FILE)]
    record = f.coalesce(f.col(CORRUPT), f.to_json(f.struct(*(_plain(rows, name) for name in plain))))
    rejected = told.where(reason.isNotNull()).select(
        f.col(FILE).alias("source_file"), reason.alias("reason"), record.alias("record")
    )
    return accepted, rejected


def require(rows: DataFrame, mapping: Mapping) -> None:
    """Refuse, before anything is read, columns that are not there."""
    names = {} if mapping.to_channel is not None else {"channel": mapping.channel}
    names |= {name: getattr(mapping, name) for name in ("content", *OPTIONAL) if getattr(mapping, name)}
    missing = [f"{part} is to come from {name!r}" for part, name in names.items() if name not in rows.columns]
    if missing:
        known = ", ".join(name for name in rows.columns if name not in (CORRUPT, FILE))
        raise InvalidArgument(f"there is no such column: {'; '.join(missing)}; there are {known}")


def _with_parts(rows: DataFrame, mapping: Mapping) -> DataFrame:
    used = {CORRUPT, FILE, *(getattr(mapping, name) for name in OPTIONAL)}
    if mapping.to_channel is None:
        used.add(mapping.channel)
    channel = f.col(f"`{mapping.channel}`") if mapping.to_channel is None else f.lit(mapping.to_channel)
    if mapping.content is not None:
        content = f.col(f"`{mapping.content}`")
        if rows.schema[mapping.content].dataType.typeName() not in ("string", "binary"):
            content = f.to_json(f.struct(content.alias("value")))
            content = f.get_json_object(content, "$.value")
    else:
        others = [name for name in rows.columns if name not in used]
        content = f.to_json(f.struct(*(_plain(rows, name) for name in others)), {"ignoreNullFields": "false"})
    kinds = {"delay_ms": "bigint", "priority": "bigint", "key": "string", "dequeue_at": "timestamp"}
    extra = [
        f.col(f"`{getattr(mapping, name)}`").try_cast(kinds[name]).alias(name)
        for name in OPTIONAL
        if getattr(mapping, name)
    ]
    return rows.withColumn(
        "part", f.struct(channel.cast("string").alias("channel"), content.alias("content"), *extra)
    )


def _plain(rows: DataFrame, name: str) -> Column:
    """A column as JSON can hold it: bytes as Base64, as everywhere in Spark."""
    return f.col(f"`{name}`").alias(name)


def _reason(mapping: Mapping) -> Column:
    """The first thing that is wrong with a row; null if nothing is."""
    channel, content = f.col("part.channel"), f.col("part.content")
    reason = f.when(f.col(CORRUPT).isNotNull(), f.lit("the line cannot be parsed"))
    reason = reason.when(channel.isNull() | (channel == ""), f.lit("the channel is empty"))
    reason = reason.when(
        f.length(channel) > LONGEST_NAME, f.lit(f"the channel is longer than {LONGEST_NAME} characters")
    )
    reason = reason.when(channel.rlike(r"[\x00-\x1f\x7f-\x9f]"), f.lit("the channel has a control character"))
    reason = reason.when(content.isNull(), f.lit("the content is empty"))
    if mapping.max_content_bytes is not None:
        most = mapping.max_content_bytes
        reason = reason.when(f.octet_length(content) > most, f.lit(f"the content has more than {most} bytes"))
    for name in DUE:
        column = getattr(mapping, name)
        if column:
            is_lost = f.col(f"`{column}`").isNotNull() & f.col(f"part.{name}").isNull()
            reason = reason.when(is_lost, f.lit(f"{name} cannot be read"))
    if mapping.delay_ms:
        reason = reason.when(f.col("part.delay_ms") < 0, f.lit("delay_ms is negative"))
        is_long = f.col("part.delay_ms") > LONGEST_DELAY_MS
        reason = reason.when(is_long, f.lit("delay_ms is longer than a hundred years"))
    if mapping.priority:
        reason = reason.when(f.col("part.priority") < 1, f.lit("priority is less than 1"))
    given = [f.col(f"part.{name}").isNotNull().cast("int") for name in DUE if getattr(mapping, name)]
    if len(given) > 1:
        reason = reason.when(sum(given, f.lit(0)) > 1, f.lit(f"more than one of {', '.join(DUE)}"))
    if mapping.key:
        key = f.length("part.key")
        words = f"the key is not of 1 to {LONGEST_NAME} characters"
        reason = reason.when((key < 1) | (key > LONGEST_NAME), f.lit(words))
    return reason.otherwise(f.lit(None))


def job_of(rows: DataFrame, mapping: Mapping) -> str:
    """A name that is the same for the same files and columns: running it again adds nothing."""
    files = sorted(rows.inputFiles())
    text = json.dumps([files, repr(mapping), _sizes(rows.sparkSession, files)])
    return f"ingest-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _sizes(spark: SparkSession, files: list[str]) -> list[list[int]]:
    """Lengths and times of change: a file of the same name with other content is another job."""
    gateway = spark.sparkContext._jvm
    assert gateway is not None
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    found = []
    for file in files:
        path = gateway.org.apache.hadoop.fs.Path(file)
        status = path.getFileSystem(settings).getFileStatus(path)
        found.append([status.getLen(), status.getModificationTime()])
    return found
