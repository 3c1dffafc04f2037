"""up: run a private PostgreSQL with a queue in it until Ctrl-C."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Json, Schema
from lonnymq.cli.output import print_error, print_json, print_text
from lonnymq.quoting import shell_argument


def up(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            help="Keep the data in this directory; without it, the data is deleted when the server stops.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="Also listen on this port of 127.0.0.1; 0 picks a free one."
        ),
    ] = None,
    binaries: Annotated[
        str,
        typer.Option(
            "--binaries",
            help="PostgreSQL to start: 'auto', 'wheel', 'system', or a directory with its programs.",
        ),
    ] = "auto",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Start a private PostgreSQL with a queue in it, for trying things out; Ctrl-C stops it.

    For production, use the PostgreSQL you already run: lonnymq install
    """
    from lonnymq.embedded import embedded

    is_stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_stopping.set())
    with embedded(data_dir, port=port, binaries=binaries) as server:
        with open_queue(server.dsn, schema) as queue:
            queue.install()
        if as_json:
            print_json({"dsn": server.dsn, "schema": schema, "version": server.version, "pid": server.pid})
        else:
            kept = f"data in {server.data_dir}" if data_dir else "temporary data"
            print_text(f"PostgreSQL {server.version} is running ({kept}); Ctrl-C stops it\n")
            print_text(f"  export LONNYMQ_DSN={shell_argument(server.dsn)}\n")
        while not is_stopping.wait(0.5):
            if not server.is_running:
                print_error("PostgreSQL has stopped unexpectedly", f"see its log: {server.log_path}")
                raise typer.Exit(CommandExit.UNREACHABLE)
    if not as_json:
        print_text("PostgreSQL has stopped")
