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
from lonnymq.cli.completion import complete_channel
from lonnymq.cli.connect import open_queue
from lonnymq.cli.message_file import ROW_ERRORS, Format, MessageReader
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import console, print_json, print_text
from lonnymq.formatting import quantity

STDIN = Path("-")
PROGRESS_BYTES = 256 * 1024


def load(
    file: Annotated[Path, typer.Argument(help="A file, or '-' for stdin.")] = STDIN,
    file_format: Annotated[
        Format | None,
        typer.Option("--format", help="Default: csv if the file's name ends in .csv, otherwise jsonl."),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel",
            "-c",
            help="Load everything into this channel: each whole line or CSV row is a payload.",
            autocompletion=complete_channel,
            show_default=False,
        ),
    ] = None,
    publication: Annotated[
        str | None,
        typer.Option(
            "--publication", help="A name for this load; a second load with the same name adds nothing."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and check everything, but load nothing.")
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Load messages from JSON lines or CSV with COPY: all or none.

    Each line has channel and payload, and may have at, delay, priority, key, max_attempts and headers. In
    CSV, the first line names the columns, and payload and headers are JSON. With --channel, each whole line
    or row is a payload; a CSV row becomes a JSON object of its columns.

    lonnymq load orders.jsonl --publication orders-2030-01-31
    """
    # Not is_file(): a pipe must work too, as in `lonnymq load <(zcat orders.gz)`.
    if file != STDIN and file.is_dir():
        raise typer.BadParameter(f"{str(file)!r} is a directory; name a file in it")
    if file != STDIN and not file.exists():
        raise typer.BadParameter(f"there is no file {str(file)!r}")
    file_format = file_format or (Format.CSV if file.suffix.lower() == ".csv" else Format.JSONL)
    with _open_lines(file) as lines:
        reader = MessageReader(lines, file_format, channel)
        try:
            if dry_run:
                for message in reader:
                    draft(message, JSON)
                published = None
            else:
                with open_queue(dsn, schema) as queue:
                    published = queue.copy_in(reader, publication=publication)
        except ROW_ERRORS as error:
            raise reader.with_line(error) from None
    if published is None:
        _report_dry_run(reader.count, as_json)
    else:
        _report(published, as_json)


def _report(published: Published, as_json: bool) -> None:
    if as_json:
        print_json(published)
    elif published.outcome is PublishOutcome.ALREADY_PUBLISHED:
        earlier = quantity(published.created, "message")
        print_text(f"{published.publication!r} was already loaded ({earlier}): nothing was added")
    else:
        duplicates = (
            f", {quantity(published.duplicates, 'duplicate')} skipped" if published.duplicates else ""
        )
        print_text(f"{quantity(published.created, 'message')} loaded{duplicates}")


def _report_dry_run(count: int, as_json: bool) -> None:
    if as_json:
        print_json({"messages": count})
    else:
        print_text(f"{quantity(count, 'message')} read, all valid; nothing was loaded")


@contextmanager
def _open_lines(file: Path) -> Iterator[Iterator[bytes]]:
    """Open the file's lines, and show progress on a terminal."""
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
