"""up: a private PostgreSQL with a queue in it, until Ctrl-C."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, Json, Schema
from lonnymq.cli.quoting import shell
from lonnymq.cli.show import emit, say, warn


def up(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", help="Keep the data here; without it, the data is deleted when the server stops."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Listen on 127.0.0.1 too; 0 takes a free port."),
    ] = None,
    binaries: Annotated[
        str,
        typer.Option(
            "--binaries", help="'wheel', 'system', 'auto', or a directory with PostgreSQL's programs."
        ),
    ] = "auto",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Start a private PostgreSQL with a queue in it, to try things; Ctrl-C ends it.

    For production, use the PostgreSQL you run anyway: lonnymq install
    """
    from lonnymq.embedded import embedded

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with embedded(data_dir, port=port, binaries=binaries) as server:
        with opened(server.dsn, schema) as queue:
            queue.install()
        if as_json:
            emit({"dsn": server.dsn, "schema": schema, "version": server.version, "pid": server.pid})
        else:
            kept = f"its data is in {server.data_dir}" if data_dir else "its data is temporary"
            say(f"PostgreSQL {server.version} is up, {kept}; Ctrl-C ends it\n")
            say(f"  export LONNYMQ_DSN={shell(server.dsn)}\n")
        while not ended.wait(0.5):
            if not server.is_running:
                warn("PostgreSQL has ended by itself", f"its log is {server.log_path}")
                raise typer.Exit(Exit.UNREACHABLE)
    if not as_json:
        say("PostgreSQL has ended")
