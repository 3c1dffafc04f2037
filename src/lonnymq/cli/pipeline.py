"""pipeline: files to the queue, history to a lake, and the lake to a report, on Spark."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lonnymq.cli import parse
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import console, print_error, print_json, print_text
from lonnymq.errors import install_advice
from lonnymq.formatting import quantity
from lonnymq.texts import escape_hidden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.source import OnProgress
    from lonnymq.pipeline.steps import Lake, Source

app = typer.Typer(
    help="Spark jobs: ingest files, archive history, analyse it, write a report.", no_args_is_help=True
)


class LakeFormatOption(StrEnum):
    DELTA = "delta"
    PARQUET = "parquet"


class FileFormatOption(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


LakePath = Annotated[
    str,
    typer.Option("--lake", envvar="LONNYMQ_LAKE", help="The lake: a directory or URL.", show_default=False),
]
LakeFormatChoice = Annotated[LakeFormatOption, typer.Option("--format", help="Format of the lake's tables.")]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Spark's master URL; default: this machine.", show_default=False),
]
Window = Annotated[
    timedelta,
    typer.Option(
        "--window",
        parser=parse.duration,
        metavar=parse.DURATION,
        help="Length of a window (default 1m).",
        show_default=False,
    ),
]
MINUTE = timedelta(minutes=1)
Checkpoint = Annotated[
    str | None,
    typer.Option("--checkpoint", help="Where Spark keeps its position; default: in the lake."),
]
Keep = Annotated[
    timedelta | None,
    typer.Option(
        "--keep",
        parser=parse.duration,
        metavar=parse.DURATION,
        help="Afterwards, drop archived history older than this: 30d.",
        show_default=False,
    ),
]
Rebase = Annotated[
    bool,
    typer.Option(
        "--rebase", help="Continue after a failover or restore, if the database still knows the position."
    ),
]
Since = Annotated[
    date | None,
    typer.Option(
        "--since", parser=parse.day, metavar=parse.DAY, help="The first day, in UTC.", show_default=False
    ),
]
Until = Annotated[
    date | None,
    typer.Option(
        "--until", parser=parse.day, metavar=parse.DAY, help="The last day, in UTC.", show_default=False
    ),
]


@app.command()
def generate(
    lake: LakePath,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of attempts.")] = 1_000_000,
    days: Annotated[int, typer.Option("--days", min=1, help="Number of days to spread them over.")] = 7,
    tenants: Annotated[
        int, typer.Option("--tenants", min=1, help="Number of steady tenants; five unusual ones are added.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", help="The same seed generates the same rows.")] = 1,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Add a synthetic history to a lake, for trying things out."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        synthetic = steps.SyntheticHistory(rows=rows, days=days, tenants=tenants, seed=seed)
        added = steps.generate(spark, synthetic, _lake(lake, lake_format), on_progress=progress)
    if as_json:
        print_json({"added": added})
    else:
        print_text(
            f"{quantity(added, 'attempt')} added"
            if added
            else "this history was already in the lake: nothing was added"
        )


@app.command()
def ingest(
    paths: Annotated[list[str], typer.Argument(help="Files or directories: Parquet, CSV or JSON lines.")],
    lake: LakePath,
    channel: Annotated[str, typer.Option("--channel", help="Column of the channel.")] = "channel",
    to_channel: Annotated[
        str | None, typer.Option("--to-channel", help="Put all messages into this channel instead.")
    ] = None,
    content: Annotated[
        str | None,
        typer.Option("--content", help="Column of the content; default: all other columns, as JSON."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Column of the key.")] = None,
    dequeue_at: Annotated[
        str | None, typer.Option("--dequeue-at", help="Column of the release time.")
    ] = None,
    delay_ms: Annotated[
        str | None, typer.Option("--delay-ms", help="Column of the delay in milliseconds.")
    ] = None,
    priority: Annotated[str | None, typer.Option("--priority", help="Column of the priority.")] = None,
    headers: Annotated[
        str | None, typer.Option("--headers", help="Column of the headers: an object, or its JSON.")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", help="Name of the job, which is done only once; default: derived from the files."
        ),
    ] = None,
    file_format: Annotated[
        FileFormatOption | None,
        typer.Option("--file-format", help="Format of the files; default: by their names."),
    ] = None,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    master: Master = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Create messages from files, all or none; invalid rows go to the lake's table `rejected`."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        mapping = steps.Mapping(
            channel=channel,
            content=content,
            dequeue_at=dequeue_at,
            delay_ms=delay_ms,
            headers=headers,
            priority=priority,
            key=key,
            to_channel=to_channel,
        )
        done = steps.ingest(
            spark,
            paths,
            _source(dsn, schema),
            _lake(lake, lake_format),
            form=None if file_format is None else steps.FileFormat(file_format),
            mapping=mapping,
            job=job,
            on_progress=progress,
        )
    if as_json:
        print_json(done)
    else:
        rejected = quantity(done.rejected, "row")
        print_text(f"job {done.job!r}: {quantity(done.accepted, 'message')} created, {rejected} rejected")


@app.command()
def archive(
    lake: LakePath,
    checkpoint: Checkpoint = None,
    keep: Keep = None,
    rebase: Rebase = False,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    master: Master = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Copy finished attempts to the lake, each once, continuing where the last run ended."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        done = steps.archive(
            spark,
            _source(dsn, schema, rebase),
            _lake(lake, lake_format),
            checkpoint=checkpoint,
            keep=keep,
            on_progress=progress,
        )
    if as_json:
        print_json(done)
    else:
        dropped = f", dropped {', '.join(done.pruned)}" if done.pruned else ""
        print_text(f"{quantity(done.rows, 'attempt')} archived{dropped}")


@app.command()
def analyse(
    lake: LakePath,
    window: Window = MINUTE,
    is_full: Annotated[bool, typer.Option("--full", help="Recompute all days.")] = False,
    since: Since = None,
    until: Until = None,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Update the figures of all days that have new attempts."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        done = steps.analyse(
            spark,
            _lake(lake, lake_format),
            window_s=int(window.total_seconds()),
            is_full=is_full,
            within=steps.DayRange(since, until),
            on_progress=progress,
        )
    if as_json:
        print_json({"days": [day.isoformat() for day in done.days], "windows": done.windows})
    else:
        print_text(f"{quantity(len(done.days), 'day')} computed, {quantity(done.windows, 'window')}")


@app.command()
def follow(
    lake: LakePath,
    window: Window = MINUTE,
    interval: Annotated[
        timedelta,
        typer.Option(
            "--interval",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="Time between the beginnings of rounds (default 1m).",
            show_default=False,
        ),
    ] = MINUTE,
    is_once: Annotated[bool, typer.Option("--once", help="Catch up, and end.")] = False,
    checkpoint: Checkpoint = None,
    keep: Keep = None,
    rebase: Rebase = False,
    master: Master = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Archive and analyse again and again, in one session, until SIGTERM or Ctrl-C."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        settings = steps.FollowSettings(
            window_s=int(window.total_seconds()),
            interval_s=interval.total_seconds(),
            keep=keep,
            checkpoint=checkpoint,
            is_once=is_once,
        )
        done = steps.follow(
            spark, _source(dsn, schema, rebase), steps.Lake(lake), settings, on_progress=progress
        )
    if as_json:
        print_json(done)
    else:
        print_text(f"{quantity(done.rows, 'attempt')} archived in {quantity(done.rounds, 'round')}")


@app.command()
def report(
    lake: LakePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    window: Window = MINUTE,
    since: Since = None,
    until: Until = None,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Write a report as one HTML file: who waited, why, and for how long."""
    with _spark_session(master) as (spark, progress):
        from lonnymq.pipeline import steps

        window_s = int(window.total_seconds())
        written = steps.report(
            spark,
            _lake(lake, lake_format),
            output,
            window_s=window_s,
            within=steps.DayRange(since, until),
            on_progress=progress,
        )
    if as_json:
        print_json({"report": str(written)})
    else:
        print_text(f"report written to {written}")


@app.command()
def maintain(
    lake: LakePath,
    lake_format: LakeFormatChoice = LakeFormatOption.DELTA,
    as_json: Json = False,
) -> None:
    """Join the small files of a lake, and delete uncommitted ones that are a week old; changes no rows."""
    _require_packages()
    from lonnymq.pipeline import steps

    done = steps.maintain(_lake(lake, lake_format))
    if as_json:
        print_json(done)
    else:
        for one in done:
            files = f"{quantity(one.files_before, 'file')}, now {one.files_after}"
            print_text(f"{one.table}: {files}; {quantity(one.deleted, 'uncommitted file')} deleted")


def _require_packages() -> None:
    missing = [name for name in ("pyspark", "pyarrow", "deltalake") if importlib.util.find_spec(name) is None]
    if missing:
        print_error(f"the pipeline needs {missing[0]}", install_advice("spark"))
        raise typer.Exit(CommandExit.USAGE)


@contextmanager
def _spark_session(master: str | None) -> Iterator[tuple["SparkSession", "OnProgress"]]:
    """Start Spark for one command, and show progress on stderr."""
    _require_packages()
    from lonnymq.pipeline.session import session_scope
    from lonnymq.pipeline.spark_errors import shorten_errors

    to = console(is_error=True)
    if not to.is_terminal:
        # Not a terminal: one line per step.
        with shorten_errors(), session_scope(master) as spark:
            yield spark, lambda line: to.print(escape_hidden(line), soft_wrap=True)
        return
    with shorten_errors(), to.status("starting Spark") as status, session_scope(master) as spark:
        yield spark, lambda line: status.update(escape_hidden(line))


def _lake(path: str, lake_format: LakeFormatOption) -> "Lake":
    from lonnymq.pipeline.steps import Lake, LakeFormat

    return Lake(path, LakeFormat(lake_format))


def _source(dsn: str, schema: str, rebase: bool = False) -> "Source":
    from lonnymq.pipeline.steps import Source

    return Source(dsn=dsn, schema=schema, rebase=rebase)
