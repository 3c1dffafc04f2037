"""message: show or cancel single messages."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import CancelOutcome
from lonnymq.cli import formatting
from lonnymq.cli.completion import complete_channel
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.outcomes import report_outcomes
from lonnymq.cli.output import print_error, print_json, print_record
from lonnymq.cli.peek import timing

app = typer.Typer(help="Show or cancel single messages.", no_args_is_help=True)


@app.command()
def show(
    message_id: Annotated[int, typer.Argument(help="The message's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show a live message: its status, attempts, last error, content and state."""
    with open_queue(dsn, schema) as queue:
        found = queue.show(message_id)
        is_dead = found is None and message_id >= 0 and queue.dead().show(message_id) is not None
    if found is None:
        advice = (
            f"it is a dead letter: `lonnymq dead show {message_id}`"
            if is_dead
            else "it has already finished, or never existed"
        )
        print_error(f"message {message_id} is not live", advice)
        raise typer.Exit(CommandExit.NO)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    print_record(
        {
            "message": str(found.id),
            "channel": found.channel,
            "key": found.key,
            "status": f"{found.status}, {timing(found, now)}",
            "attempts": f"{found.attempts} of {found.max_attempts or 'unlimited'}",
            "created": formatting.timestamp_with_age(found.created_at, now),
            "leased": formatting.timestamp_with_age(found.leased_at, now),
            "last error": found.error,
            "state": formatting.content_text(found.state_content),
            "headers": formatting.headers_text(found.headers),
            "content": formatting.content_with_size(found.content, found.content_bytes),
        }
    )


@app.command()
def cancel(
    message_ids: Annotated[list[int] | None, typer.Argument(help="Message ids.", show_default=False)] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel",
            "-c",
            help="With --key: the channel of the message.",
            autocompletion=complete_channel,
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Instead of ids: the message with this key.")
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Remove messages from the queue permanently, by id or by key.

    If a worker holds one of them, it is told at its next heartbeat.
    """
    is_by_key = channel is not None and key is not None
    if bool(message_ids) == is_by_key or (channel is None) != (key is None):
        raise typer.BadParameter("give either ids, or --channel and --key")
    what = (
        formatting.quantity(len(message_ids), "message")
        if message_ids
        else f"the message with key {key!r} of {channel!r}"
    )
    require_confirmation(f"Cancel {what}?", is_confirmed=yes)
    with open_queue(dsn, schema) as queue:
        if message_ids:
            outcomes = dict(zip(map(str, message_ids), queue.cancel(message_ids), strict=True))
        else:
            assert channel is not None
            assert key is not None
            outcomes = {key: queue.cancel_key(channel, key)}
    report_outcomes(outcomes, CancelOutcome.CANCELLED, as_json)
