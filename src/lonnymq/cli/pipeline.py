"""pipeline: from files to the queue, from history to the lake, and from there to a report."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lonnymq.cli import parse
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.show import console, emit, say, warn
from lonnymq.cli.words import counted
from lonnymq.errors import install_advice
from lonnymq.texts import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.source import Say
    from lonnymq.pipeline.steps import Lake, Source

app = typer.Typer(help="Spark: ingest files, archive history, analyse it, report.", no_args_is_help=True)


class LakeForm(StrEnum):
    DELTA = "delta"
    PARQUET = "parquet"


class FileForm(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


LakePath = Annotated[
    str, typer.Option("--lake", envvar="LONNYMQ_LAKE", help="Where the lake is.", show_default=False)
]
Form = Annotated[LakeForm, typer.Option("--format", help="Of the lake's tables.")]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Where Spark runs; this machine unless given.", show_default=False),
]
Window = Annotated[
    timedelta,
    typer.Option(
        "--window",
        parser=parse.duration,
        metavar=parse.DURATION,
        help="A window's length (default 1m).",
        show_default=False,
    ),
]
MINUTE = timedelta(minutes=1)


@app.command()
def generate(
    lake: LakePath,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Attempts.")] = 1_000_000,
    days: Annotated[int, typer.Option("--days", min=1, help="Days they are spread over.")] = 7,
    tenants: Annotated[
        int, typer.Option("--tenants", min=1, help="Steady tenants; five unusual ones are added.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same rows.")] = 1,
    form: Form = LakeForm.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Add a synthetic history to a lake, to try things on."""
    with _session(master) as (spark, tell):
        from lonnymq.pipeline import steps

        synthetic = steps.Synthetic(rows=rows, days=days, tenants=tenants, seed=seed)
        added = steps.generate(spark, synthetic, _lake(lake, form), say=tell)
    if as_json:
        emit({"added": added})
    else:
        say(f"{counted(added, 'attempt')} added" if added else "that history was there already")


@app.command()
def ingest(
    paths: Annotated[list[str], typer.Argument(help="Files or directories: Parquet, CSV or JSON lines.")],
    lake: LakePath,
    channel: Annotated[str, typer.Option("--channel", help="The column of the channel.")] = "channel",
    to_channel: Annotated[str | None, typer.Option("--to-channel", help="All go to this channel.")] = None,
    content: Annotated[
        str | None, typer.Option("--content", help="The column of the content; else all others, as JSON.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="The column of the key.")] = None,
    dequeue_at: Annotated[str | None, typer.Option("--dequeue-at", help="The column of the time.")] = None,
    delay_ms: Annotated[str | None, typer.Option("--delay-ms", help="The column of the delay.")] = None,
    priority: Annotated[str | None, typer.Option("--priority", help="The column of the priority.")] = None,
    job: Annotated[
        str | None, typer.Option("--job", help="A name: it happens once. By the files unless given.")
    ] = None,
    file_form: Annotated[
        FileForm | None, typer.Option("--file-format", help="Of the files; by their names unless given.")
    ] = None,
    form: Form = LakeForm.DELTA,
    master: Master = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Make messages of files, all or none; rows that cannot be one go to the lake's table `rejected`."""
    with _session(master) as (spark, tell):
        from lonnymq.pipeline import steps

        mapping = steps.Mapping(
            channel=channel,
            content=content,
            dequeue_at=dequeue_at,
            delay_ms=delay_ms,
            priority=priority,
            key=key,
            to_channel=to_channel,
        )
        done = steps.ingest(
            spark,
            paths,
            _source(dsn, schema),
            _lake(lake, form),
            form=None if file_form is None else steps.FileFormat(file_form),
            mapping=mapping,
            job=job,
            say=tell,
        )
    if as_json:
        emit(done)
    else:
        rejected = counted(done.rejected, "row")
        say(f"{counted(done.accepted, 'message')} of job {done.job!r}, {rejected} rejected")


@app.command()
def archive(
    lake: LakePath,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="Where Spark keeps its place; in the lake unless given."),
    ] = None,
    keep: Annotated[
        timedelta | None,
        typer.Option(
            "--keep",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="Then drop history that is older and archived: 30d.",
            show_default=False,
        ),
    ] = None,
    form: Form = LakeForm.DELTA,
    master: Master = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Bring all attempts that have ended to the lake, each once; go on where the last run ended."""
    with _session(master) as (spark, tell):
        from lonnymq.pipeline import steps

        done = steps.archive(
            spark, _source(dsn, schema), _lake(lake, form), checkpoint=checkpoint, keep=keep, say=tell
        )
    if as_json:
        emit(done)
    else:
        dropped = f", dropped {', '.join(done.pruned)}" if done.pruned else ""
        say(f"{counted(done.rows, 'attempt')} archived{dropped}")


@app.command()
def analyse(
    lake: LakePath,
    window: Window = MINUTE,
    is_full: Annotated[bool, typer.Option("--full", help="Compute every day again.")] = False,
    form: Form = LakeForm.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Bring the figures of the days that have new attempts up to date."""
    with _session(master) as (spark, tell):
        from lonnymq.pipeline import steps

        done = steps.analyse(
            spark, _lake(lake, form), window_s=int(window.total_seconds()), is_full=is_full, say=tell
        )
    if as_json:
        emit({"days": [day.isoformat() for day in done.days], "windows": done.windows})
    else:
        say(f"{counted(len(done.days), 'day')} computed, {counted(done.windows, 'window')}")


@app.command()
def report(
    lake: LakePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("report.html"),
    window: Window = MINUTE,
    form: Form = LakeForm.DELTA,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Write what was found as one HTML file: who waited, why, and for how long."""
    with _session(master) as (spark, tell):
        from lonnymq.pipeline import steps

        window_s = int(window.total_seconds())
        written = steps.report(spark, _lake(lake, form), output, window_s=window_s, say=tell)
    if as_json:
        emit({"report": str(written)})
    else:
        say(f"the report is at {written}")


@contextmanager
def _session(master: str | None) -> Iterator[tuple["SparkSession", "Say"]]:
    """Start Spark, with its progress on stderr where somebody looks; end it with the command."""
    missing = [name for name in ("pyspark", "pyarrow", "deltalake") if importlib.util.find_spec(name) is None]
    if missing:
        warn(f"the pipeline needs {missing[0]}", install_advice("spark"))
        raise typer.Exit(Exit.USAGE)
    from lonnymq.pipeline.session import borrowed

    to = console(is_error=True)
    if not to.is_terminal:
        # For logs: one line per step.
        with borrowed(master) as spark:
            yield spark, lambda line: to.print(visible(line), soft_wrap=True)
        return
    with to.status("starting Spark") as status, borrowed(master) as spark:
        yield spark, lambda line: status.update(visible(line))


def _lake(path: str, form: LakeForm) -> "Lake":
    from lonnymq.pipeline.steps import Lake, LakeFormat

    return Lake(path, LakeFormat(form))


def _source(dsn: str, schema: str) -> "Source":
    from lonnymq.pipeline.steps import Source

    return Source(dsn=dsn, schema=schema)
