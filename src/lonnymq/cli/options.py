"""Options that several commands share."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from lonnymq.cli import parse
from lonnymq.cli.completion import complete_channel

CONNECTION = "Connection"

Dsn = Annotated[
    str,
    typer.Option(
        "--dsn",
        envvar="LONNYMQ_DSN",
        help="The database: a URL or a libpq connection string. Default: the PG* environment variables"
        " (PGHOST, PGDATABASE, PGSERVICE, ...).",
        show_default=False,
        rich_help_panel=CONNECTION,
    ),
]
Schema = Annotated[
    str,
    typer.Option("--schema", envvar="LONNYMQ_SCHEMA", help="The queue's schema.", rich_help_panel=CONNECTION),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ChannelName = Annotated[str, typer.Argument(help="The channel's name.", autocompletion=complete_channel)]
ChannelOption = Annotated[
    str | None,
    typer.Option(
        "--channel", "-c", help="Only this channel.", autocompletion=complete_channel, show_default=False
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of rows.")]
At = Annotated[
    datetime | None,
    typer.Option(
        "--at",
        parser=parse.timestamp,
        metavar=parse.TIMESTAMP,
        help="Do not release before this time: ISO 8601 with UTC offset.",
    ),
]
Delay = Annotated[
    timedelta | None,
    typer.Option(
        "--delay",
        parser=parse.duration,
        metavar=parse.DURATION,
        help="Do not release before this much time has passed: 90s, 2h.",
    ),
]
Payload = Annotated[
    str, typer.Argument(help="JSON, or '-' for the bytes on stdin, unchanged.", show_default=False)
]
IsText = Annotated[bool, typer.Option("--text", help="Treat the payload as a string, not as JSON.")]
MaxAttempts = Annotated[
    int | None,
    typer.Option("--max-attempts", min=1, help="Attempts before it is buried; default: the channel's limit."),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="A header of the message; may be repeated."),
]
DEFAULT_SCHEMA = "lonnymq"
