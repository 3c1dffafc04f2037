"""enqueue: put one message into a channel."""

from datetime import timedelta
from typing import Annotated

import typer

from lonnymq import CreateOutcome
from lonnymq.cli import parse
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import (
    DEFAULT_SCHEMA,
    At,
    ChannelName,
    Delay,
    Dsn,
    Headers,
    IsText,
    Json,
    MaxAttempts,
    Payload,
    Schema,
)
from lonnymq.cli.output import print_error, print_json, print_text


def enqueue(
    channel: ChannelName,
    payload: Payload,
    text: IsText = False,
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
    max_attempts: MaxAttempts = None,
    header: Headers = None,
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
    content = parse.payload_or_stdin(payload, is_text=text)
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
