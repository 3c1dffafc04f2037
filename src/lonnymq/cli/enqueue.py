"""enqueue: put one message into a channel."""

import sys
from typing import Annotated

import typer

from lonnymq import CreateOutcome
from lonnymq.cli import parse
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, At, ChannelName, Delay, Dsn, Json, Schema
from lonnymq.cli.show import emit, say, warn


def enqueue(
    channel: ChannelName,
    payload: Annotated[
        str, typer.Argument(help="JSON, or '-' for the bytes on stdin as they are.", show_default=False)
    ],
    text: Annotated[bool, typer.Option("--text", help="The payload is a string, not JSON.")] = False,
    at: At = None,
    delay: Delay = None,
    priority: Annotated[
        int | None, typer.Option("--priority", min=1, help="Before all others; the highest first.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Only if no live message of the channel has this key.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", min=1, help="Attempts before it is buried.")
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Put one message into a channel.

    lonnymq enqueue acme '{"video": 7}' --delay 15m
    """
    content = sys.stdin.buffer.read() if payload == "-" else parse.payload(payload, is_text=text)
    with opened(dsn, schema) as queue:
        created = queue.enqueue(
            channel, content, at=at, delay=delay, priority=priority, key=key, max_attempts=max_attempts
        )
    if as_json:
        emit(created)
    elif created.outcome is CreateOutcome.CREATED:
        say(f"message {created.id} is in channel {channel!r}")
    elif created.outcome is CreateOutcome.DUPLICATE:
        say(f"message {created.id} of channel {channel!r} has that key already: nothing was added")
    else:
        warn(
            f"channel {channel!r} is full: the message was dropped",
            "`lonnymq channel set --max-size` allows more",
        )
    if created.outcome is CreateOutcome.DROPPED:
        raise typer.Exit(Exit.NO)
