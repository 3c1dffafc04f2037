"""Loads Parquet, CSV or JSON lines into the queue; rows that cannot become messages go to a table."""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from lonnymq.errors import InvalidArgument, invalid
from lonnymq.pipeline import schemas
from lonnymq.pipeline.ingest_headers import headers_problem, read_headers
from lonnymq.pipeline.lake import Batch, Lake
from lonnymq.pipeline.source import OnProgress, Source, ignore_progress, require_classic
from lonnymq.pipeline.spark_errors import shorten_errors, summary_of
from lonnymq.spark.columns import PLAUSIBLE_YEARS
from lonnymq.spark.options import parse_write
from lonnymq.spark.source import activate

# Columns for a line that could not be parsed, for the file it came from, and for the parts of its message.
CORRUPT, FILE, PART = "_lonnymq_corrupt", "_lonnymq_file", "_lonnymq_part"
# What decoders write for bytes that are not UTF-8.
REPLACEMENT = "\ufffd"
CONTROL = r"[\x00-\x1f\x7f-\x9f]"
MAX_NAME_LENGTH = 255
# Columns that determine when a message is due; a row may have at most one of them.
DUE_COLUMNS = ("dequeue_at", "delay_ms", "priority")
OPTIONAL = (*DUE_COLUMNS, "key", "headers")
MAX_DELAY_MS = 3_155_760_000_000
MAX_PRIORITY = 9_000_000_000_000_000
WRITER = "ingest"


class FileFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """Which column becomes which part of a message. Without `content`, all others form a JSON object."""

    channel: str = "channel"
    content: str | None = None
    dequeue_at: str | None = None
    delay_ms: str | None = None
    priority: str | None = None
    key: str | None = None
    headers: str | None = None
    # If given, all rows go to this channel.
    to_channel: str | None = None
    max_content_bytes: int | None = None


@dataclass(frozen=True)
class IngestResult:
    """The job's name, under which it is published once, and how many rows were accepted and rejected."""

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
    on_progress: OnProgress = ignore_progress,
) -> IngestResult:
    """Create messages from all rows of the files, in one transaction and once per job."""
    require_classic(spark, "ingest", "reads the sizes and times of the files through Spark's JVM")
    rows = read_existing_files(spark, paths, form or infer_format(paths))
    mapping = resolve_columns(mapping or Mapping(), rows.columns)
    accepted, rejected = split_rows(rows, mapping)
    job = job or job_name(rows, mapping)
    # Rejects the job's name, before anything is written.
    parse_write(source.options(job=job), is_stream=False)
    # Rejected rows first. If the job is interrupted and repeated, each of the two still happens once.
    day = schemas.day_of(f.timestamp_millis(f.lit(round(datetime.now(UTC).timestamp() * 1000))))
    rejected_rows = rejected.withColumn("job", f.lit(job)).withColumn("day", day)
    writer = Batch(f"{WRITER} {job}", 0)
    with shorten_errors():
        lake.rejected.append(schemas.conform(rejected_rows, schemas.REJECTED), writer)
        rejected_count = rejected.count()
        see = f", see {lake.rejected.path}" if rejected_count else ""
        on_progress(f"rows rejected: {rejected_count:,}{see}")
        accepted_count = accepted.count()
        on_progress(f"rows sent to the queue as job {job!r}: {accepted_count:,}")
        activate(spark)
        accepted.write.format("lonnymq").options(**source.options(job=job)).mode("append").save()
    return IngestResult(job, accepted_count, rejected_count)


def infer_format(paths: Sequence[str]) -> FileFormat:
    """Return the format that the files' names indicate."""
    endings = {path.rstrip("/").rpartition(".")[2].lower() for path in paths}
    kinds = {"parquet": FileFormat.PARQUET, "csv": FileFormat.CSV}
    kinds |= dict.fromkeys(("json", "jsonl", "ndjson"), FileFormat.JSON)
    if len(endings) != 1 or (ending := endings.pop()) not in kinds:
        raise invalid(
            "paths",
            list(paths),
            "files with one of the endings .parquet, .csv and .json, unless their format is given",
        )
    return kinds[ending]


def read_existing_files(spark: SparkSession, paths: Sequence[str], form: FileFormat) -> DataFrame:
    """Return all rows; a path that does not exist is the caller's mistake, not a failure of Spark."""
    try:
        return read_files(spark, paths, form)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise _unreadable(paths, form, error) from error
        missing = (error.getMessageParameters() or {}).get("path", "?")
        raise invalid("paths", missing, "a file or directory that exists") from error
    except (PySparkException, Py4JError) as error:
        raise _unreadable(paths, form, error) from error


def _unreadable(paths: Sequence[str], form: FileFormat, error: BaseException) -> InvalidArgument:
    return invalid("paths", list(paths), f"{form} files that Spark can read: {summary_of(error)}")


def _literal(path: str) -> str:
    """Return the path of an existing file so that Spark does not take it for a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path) if os.path.exists(path) else path


def read_files(spark: SparkSession, paths: Sequence[str], form: FileFormat) -> DataFrame:
    """Return all rows unchanged; a line that cannot be parsed is a row as well."""
    if not paths:
        raise invalid("paths", paths, "at least one file")
    chosen = [_literal(path) for path in paths]
    if form is FileFormat.PARQUET:
        # Otherwise columns that only some of the files have would be lost.
        rows = (
            spark.read.option("mergeSchema", "true")
            .parquet(*chosen)
            .withColumn(CORRUPT, f.lit(None).cast("string"))
        )
    elif form is FileFormat.CSV:
        # Every value stays a string: an id with leading zeros is not a number.
        # A quote inside quotes is doubled, which is the usual format but not Spark's default.
        options = {
            "header": "true",
            "escape": '"',
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
        }
        # To find the names, Spark would take those of files for patterns if lines could continue.
        first = spark.read.options(**options).csv(chosen)
        names = first.columns
        # A quoted value may have several lines. So a file is read by one task.
        options["multiLine"] = "true"
        # The names are those of the first file: with others, values would get into wrong columns.
        if len(first.inputFiles()) > 1:
            options["enforceSchema"] = "false"
        fields = [StructField(name, StringType()) for name in (*names, CORRUPT)]
        rows = spark.read.schema(StructType(fields)).options(**options).csv(chosen)
        line = f.concat_ws(",", *map(_column, names))
        rows = rows.withColumn(CORRUPT, f.coalesce(CORRUPT, f.when(line.contains(REPLACEMENT), line)))
    else:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        found = spark.read.options(**options).json(chosen).schema
        if CORRUPT not in found.names:
            found = found.add(CORRUPT, StringType())
        rows = spark.read.schema(found).options(**options).json(chosen)
    return rows.withColumn(FILE, f.input_file_name())


def resolve_columns(mapping: Mapping, columns: Sequence[str]) -> Mapping:
    """Return the mapping with the names as the files write them: as in Spark, their case does not matter."""
    known = {name.lower(): name for name in columns}
    named = {name: getattr(mapping, name) for name in ("channel", "content", *OPTIONAL)}
    return replace(mapping, **{part: name and known.get(name.lower(), name) for part, name in named.items()})


def split_rows(rows: DataFrame, mapping: Mapping) -> tuple[DataFrame, DataFrame]:
    """Return the rows that can become messages, and the others with the reason for each."""
    check_columns(rows, mapping)
    check_channel(mapping.to_channel)
    mapped = _add_parts(rows, mapping)
    reason = _rejection_reason(mapping)
    parts = ["channel", "content", *(name for name in OPTIONAL if getattr(mapping, name))]
    accepted = mapped.where(reason.isNull()).select(*(f.col(f"{PART}.{name}") for name in parts))
    plain = [name for name in rows.columns if name not in (CORRUPT, FILE)]
    record = f.coalesce(f.col(CORRUPT), f.to_json(f.struct(*(_json_column(rows, name) for name in plain))))
    rejected = mapped.where(reason.isNotNull()).select(
        f.col(FILE).alias("source_file"), reason.alias("reason"), record.alias("record")
    )
    return accepted, rejected


def check_channel(name: str | None) -> None:
    """Raise if all rows would be rejected because of the channel that was chosen for them."""
    if name is not None and (not 1 <= len(name) <= MAX_NAME_LENGTH or re.search(CONTROL, name)):
        raise invalid(
            "to_channel", name, f"1 to {MAX_NAME_LENGTH} characters, none of them a control character"
        )


def check_columns(rows: DataFrame, mapping: Mapping) -> None:
    """Raise, before anything is read, if a mapped column does not exist."""
    names = {} if mapping.to_channel is not None else {"channel": mapping.channel}
    names |= {name: getattr(mapping, name) for name in ("content", *OPTIONAL) if getattr(mapping, name)}
    missing = [f"{name!r}, for {part}" for part, name in names.items() if name not in rows.columns]
    if missing:
        known = ", ".join(name for name in rows.columns if name not in (CORRUPT, FILE))
        raise InvalidArgument(
            f"the files have no column {'; no column '.join(missing)}; their columns are {known}"
        )


def _add_parts(rows: DataFrame, mapping: Mapping) -> DataFrame:
    used = {CORRUPT, FILE, *(getattr(mapping, name) for name in OPTIONAL)}
    if mapping.to_channel is None:
        used.add(mapping.channel)
    channel = _column(mapping.channel) if mapping.to_channel is None else f.lit(mapping.to_channel)
    if mapping.content is not None:
        content = _column(mapping.content)
        if rows.schema[mapping.content].dataType.typeName() not in ("string", "binary"):
            content = f.to_json(f.struct(content.alias("value")))
            content = f.get_json_object(content, "$.value")
    else:
        others = [name for name in rows.columns if name not in used]
        content = f.to_json(
            f.struct(*(_json_column(rows, name) for name in others)), {"ignoreNullFields": "false"}
        )
    kinds = {"delay_ms": "bigint", "priority": "bigint", "key": "string", "dequeue_at": "timestamp"}
    extra = [
        _column(getattr(mapping, name)).try_cast(kind).alias(name)
        for name, kind in kinds.items()
        if getattr(mapping, name)
    ]
    if mapping.headers:
        extra.append(read_headers(rows, mapping.headers).alias("headers"))
    return rows.withColumn(
        PART, f.struct(channel.cast("string").alias("channel"), content.alias("content"), *extra)
    )


def _column(name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`")


def _json_column(rows: DataFrame, name: str) -> Column:
    """Return a column in a form that JSON can represent: binary values as base64, as elsewhere in Spark."""
    return _column(name).alias(name)


def _rejection_reason(mapping: Mapping) -> Column:
    """The first problem of a row; null if it has none."""
    channel, content = f.col(f"{PART}.channel"), f.col(f"{PART}.content")
    reason = f.when(f.col(CORRUPT).isNotNull(), f.lit("the line cannot be parsed"))
    for name in ("channel", *(["key"] if mapping.key else [])):
        is_text = f.is_valid_utf8(f.col(f"{PART}.{name}"))
        reason = reason.when(~is_text, f.lit(f"the {name} is not UTF-8"))
    reason = reason.when(channel.isNull() | (channel == ""), f.lit("the channel is empty"))
    reason = reason.when(
        f.length(channel) > MAX_NAME_LENGTH, f.lit(f"the channel is longer than {MAX_NAME_LENGTH} characters")
    )
    reason = reason.when(channel.rlike(CONTROL), f.lit("the channel contains a control character"))
    reason = reason.when(content.isNull(), f.lit("the content is empty"))
    if mapping.max_content_bytes is not None:
        most = mapping.max_content_bytes
        reason = reason.when(f.octet_length(content) > most, f.lit(f"the content has more than {most} bytes"))
    for name in (*DUE_COLUMNS, "headers"):
        column = getattr(mapping, name)
        if column:
            is_lost = _column(column).isNotNull() & f.col(f"{PART}.{name}").isNull()
            reason = reason.when(is_lost, f.lit(f"{name} cannot be parsed"))
    if mapping.dequeue_at:
        first, last = PLAUSIBLE_YEARS
        year = f.year(f.col(f"{PART}.dequeue_at"))
        reason = reason.when(
            ~year.between(first, last), f.lit(f"dequeue_at is not in the years {first} to {last}")
        )
    if mapping.delay_ms:
        reason = reason.when(f.col(f"{PART}.delay_ms") < 0, f.lit("delay_ms is negative"))
        is_long = f.col(f"{PART}.delay_ms") > MAX_DELAY_MS
        reason = reason.when(is_long, f.lit("delay_ms is longer than a hundred years"))
    if mapping.priority:
        priority = f.col(f"{PART}.priority")
        reason = reason.when(priority < 1, f.lit("priority is less than 1"))
        reason = reason.when(priority > MAX_PRIORITY, f.lit(f"priority is more than {MAX_PRIORITY}"))
    given = [
        f.col(f"{PART}.{name}").isNotNull().cast("int") for name in DUE_COLUMNS if getattr(mapping, name)
    ]
    if len(given) > 1:
        reason = reason.when(sum(given, f.lit(0)) > 1, f.lit(f"more than one of {', '.join(DUE_COLUMNS)}"))
    if mapping.key:
        key = f.length(f"{PART}.key")
        problem = f"the key does not have 1 to {MAX_NAME_LENGTH} characters"
        reason = reason.when((key < 1) | (key > MAX_NAME_LENGTH), f.lit(problem))
        reason = reason.when(f.col(f"{PART}.key").contains("\0"), f.lit("the key contains NUL"))
    if mapping.headers:
        invalid_headers = headers_problem(f.col(f"{PART}.headers"))
        reason = reason.when(invalid_headers.isNotNull(), invalid_headers)
    return reason.otherwise(f.lit(None))


def job_name(rows: DataFrame, mapping: Mapping) -> str:
    """Return a name that is the same for the same files and mapping, so that a repetition adds nothing."""
    files = sorted(rows.inputFiles())
    text = json.dumps([files, repr(mapping), _file_versions(rows.sparkSession, files)])
    return f"ingest-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _file_versions(spark: SparkSession, files: list[str]) -> list[list[int]]:
    """Return sizes and modification times, so that a changed file with the same name is another job."""
    gateway = spark.sparkContext._jvm
    assert gateway is not None
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    found = []
    for file in files:
        path = gateway.org.apache.hadoop.fs.Path(file)
        status = path.getFileSystem(settings).getFileStatus(path)
        found.append([status.getLen(), status.getModificationTime()])
    return found
