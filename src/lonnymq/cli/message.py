"""message: one message."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import CancelOutcome
from lonnymq.cli import words
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelOption, Dsn, Json, Schema, Yes
from lonnymq.cli.outcomes import report
from lonnymq.cli.peek import when
from lonnymq.cli.show import emit, show_record, warn

app = typer.Typer(help="One message: show it, cancel it.", no_args_is_help=True)


@app.command()
def show(
    message_id: Annotated[int, typer.Argument(help="The message's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show a live message: where it is, its attempts, its last error, its content and state."""
    with opened(dsn, schema) as queue:
        found = queue.show(message_id)
        is_dead = found is None and message_id >= 0 and queue.dead().show(message_id) is not None
    if found is None:
        where = (
            f"it is a dead letter: `lonnymq dead show {message_id}`"
            if is_dead
            else "it has already finished, or never existed"
        )
        warn(f"message {message_id} is not live", where)
        raise typer.Exit(Exit.NO)
    if as_json:
        emit(found)
        return
    now = datetime.now(UTC)
    show_record(
        {
            "message": str(found.id),
            "channel": found.channel,
            "key": found.key,
            "status": f"{found.status}, {when(found, now)}",
            "attempts": f"{found.attempts} of {found.max_attempts or 'any number'}",
            "created": words.ago(found.created_at, now),
            "leased": words.ago(found.leased_at, now),
            "last error": found.error,
            "state": words.content_text(found.state_content),
            "content": f"{words.size(found.content_bytes)}\n{words.content_text(found.content)}",
        }
    )


@app.command()
def cancel(
    message_ids: Annotated[
        list[int] | None, typer.Argument(help="Ids of messages.", show_default=False)
    ] = None,
    channel: ChannelOption = None,
    key: Annotated[
        str | None, typer.Option("--key", help="With --channel: the message that has this key.")
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Take messages out of the queue for good, by id or by key.

    The worker of a leased one learns at its next heartbeat.
    """
    is_by_key = channel is not None and key is not None
    if bool(message_ids) == is_by_key or (channel is None) != (key is None):
        raise typer.BadParameter("give ids, or --channel and --key")
    what = (
        words.counted(len(message_ids), "message")
        if message_ids
        else f"the message with key {key!r} of {channel!r}"
    )
    require_yes(f"Cancel {what}?", is_yes=yes)
    with opened(dsn, schema) as queue:
        if message_ids:
            outcomes = dict(zip(map(str, message_ids), queue.cancel(message_ids), strict=True))
        else:
            assert channel is not None
            assert key is not None
            outcomes = {key: queue.cancel_key(channel, key)}
    report(outcomes, CancelOutcome.CANCELLED, as_json)
