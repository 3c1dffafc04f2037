"""load: many messages from a file or stdin, all or none."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from lonnymq import Published, PublishOutcome
from lonnymq.calls.codec import JSON
from lonnymq.calls.draft import draft
from lonnymq.cli.complete import channels
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.rows import REFUSED, Format, Reader
from lonnymq.cli.show import console, emit, say
from lonnymq.cli.words import counted

STDIN = Path("-")
PROGRESS_BYTES = 256 * 1024


def load(
    file: Annotated[Path, typer.Argument(help="A file, or '-' for stdin.")] = STDIN,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Default: by the file's name, otherwise JSON lines."),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel",
            "-c",
            help="Load everything into this channel: each line, or each row of CSV, is a payload.",
            autocompletion=channels,
            show_default=False,
        ),
    ] = None,
    publication: Annotated[
        str | None,
        typer.Option(
            "--publication", help="A name: a load of that name happens once, however often it is run."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check all, load nothing.")] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Load messages from JSON lines or CSV, by COPY: all or none.

    Each line has channel and payload, and may have at, delay, priority, key and max_attempts. In CSV the
    first line names the columns, and payload is JSON. With --channel, each line or row is a payload, without
    any of these names; a row of CSV becomes an object of its columns.

    lonnymq load orders.jsonl --publication orders-2030-01-31
    """
    # A pipe is a file too: load <(zcat orders.gz).
    if file != STDIN and file.is_dir():
        raise typer.BadParameter(f"{str(file)!r} is a directory: name a file in it")
    if file != STDIN and not file.exists():
        raise typer.BadParameter(f"there is no file {str(file)!r}")
    form = form or (Format.CSV if file.suffix.lower() == ".csv" else Format.JSONL)
    with _lines(file) as lines:
        reader = Reader(lines, form, channel)
        try:
            if dry_run:
                for message in reader:
                    draft(message, JSON)
                published = None
            else:
                with opened(dsn, schema) as queue:
                    published = queue.copy_in(reader, publication=publication)
        except REFUSED as error:
            raise reader.located(error) from None
    if published is None:
        _report_dry(reader.count, as_json)
    else:
        _report(published, as_json)


def _report(published: Published, as_json: bool) -> None:
    if as_json:
        emit(published)
    elif published.outcome is PublishOutcome.ALREADY_PUBLISHED:
        before = counted(published.created, "message")
        say(f"{published.publication!r} was loaded before, {before}: nothing was added")
    else:
        duplicates = f", {published.duplicates:,} had a key that is live" if published.duplicates else ""
        say(f"{counted(published.created, 'message')} loaded{duplicates}")


def _report_dry(count: int, as_json: bool) -> None:
    if as_json:
        emit({"messages": count})
    else:
        say(f"{counted(count, 'message')} read, all well formed; nothing was loaded")


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[bytes]]:
    """Lend the lines, and show on a terminal how far they were read."""
    to = console(is_error=True)
    columns = (TextColumn("loading"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    is_stdin = file == STDIN
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as progress:
        task = progress.add_task("loading", total=None if is_stdin else file.stat().st_size or None)
        source = sys.stdin.buffer if is_stdin else file.open("rb")

        def lines() -> Iterator[bytes]:
            unseen = 0
            for line in source:
                unseen += len(line)
                if unseen >= PROGRESS_BYTES:
                    progress.advance(task, unseen)
                    unseen = 0
                yield line

        try:
            yield lines()
        finally:
            if not is_stdin:
                source.close()
