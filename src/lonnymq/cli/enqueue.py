"""enqueue: put one message into a channel."""

import sys
from datetime import timedelta
from typing import Annotated

import typer

from lonnymq import CreateOutcome
from lonnymq.cli import parse
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, At, ChannelName, Delay, Dsn, Json, Schema
from lonnymq.cli.output import print_error, print_json, print_text


def enqueue(
    channel: ChannelName,
    payload: Annotated[
        str, typer.Argument(help="JSON, or '-' for the bytes on stdin, unchanged.", show_default=False)
    ],
    text: Annotated[bool, typer.Option("--text", help="Treat the payload as a string, not as JSON.")] = False,
    at: At = None,
    delay: Delay = None,
    priority: Annotated[
        int | None,
        typer.Option("--priority", min=1, help="Release before messages without a priority; highest first."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Create nothing if a live message of the channel has this key."),
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(
            "--max-attempts", min=1, help="Attempts before it is buried; default: the channel's limit."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="A header of the message; may be repeated."),
    ] = None,
    keep_result: Annotated[
        timedelta | None,
        typer.Option(
            "--keep-result",
            metavar="DURATION",
            parser=parse.duration,
            help="Keep its result this long after it has ended, at most 7d.",
        ),
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Put one message into a channel.

    lonnymq enqueue acme '{"video": 7}' --delay 15m
    """
    content = sys.stdin.buffer.read() if payload == "-" else parse.payload(payload, is_text=text)
    with open_queue(dsn, schema) as queue:
        created = queue.enqueue(
            channel,
            content,
            at=at,
            delay=delay,
            priority=priority,
            key=key,
            max_attempts=max_attempts,
            headers=parse.headers(header or []),
            keep_result=keep_result,
        )
    if as_json:
        print_json(created)
    elif created.outcome is CreateOutcome.CREATED:
        print_text(f"message {created.id} created in channel {channel!r}")
    elif created.outcome is CreateOutcome.DUPLICATE:
        print_text(f"message {created.id} of channel {channel!r} already has this key: nothing was created")
    else:
        print_error(
            f"channel {channel!r} is full: the message was dropped",
            "`lonnymq channel set --max-size` raises the limit",
        )
    if created.outcome is CreateOutcome.DROPPED:
        raise typer.Exit(CommandExit.NO)
