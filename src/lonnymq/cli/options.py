"""Options that many commands share."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from lonnymq.cli import parse
from lonnymq.cli.complete import channels

CONNECTION = "Connection"

Dsn = Annotated[
    str,
    typer.Option(
        "--dsn",
        envvar="LONNYMQ_DSN",
        help="Where the database is: a URL or a libpq connection string. Without it, libpq's environment:"
        " PGHOST, PGDATABASE, PGSERVICE and so on.",
        show_default=False,
        rich_help_panel=CONNECTION,
    ),
]
Schema = Annotated[
    str,
    typer.Option(
        "--schema", envvar="LONNYMQ_SCHEMA", help="The queue: its schema.", rich_help_panel=CONNECTION
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the question.")]
ChannelName = Annotated[str, typer.Argument(help="The channel's name.", autocompletion=channels)]
ChannelOption = Annotated[
    str | None,
    typer.Option("--channel", "-c", help="Only this channel's.", autocompletion=channels, show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most this many.")]
At = Annotated[
    datetime | None,
    typer.Option(
        "--at", parser=parse.instant, metavar=parse.INSTANT, help="Not before: ISO 8601 with its offset."
    ),
]
Delay = Annotated[
    timedelta | None,
    typer.Option(
        "--delay",
        parser=parse.duration,
        metavar=parse.DURATION,
        help="Not before this much time has passed: 90s, 2h.",
    ),
]
DEFAULT_SCHEMA = "lonnymq"
