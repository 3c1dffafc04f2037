"""peek: show messages without leasing them."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import LiveMessage, MessageStatus, formatting
from lonnymq.cli.completion import complete_channel
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema
from lonnymq.cli.output import Cell, print_json, print_table

PREVIEW_BYTES = 1_000
# Beyond this, a date is clearer than a number of days.
FAR_S = 366 * 86_400


def peek(
    channel: Annotated[
        str | None,
        typer.Argument(
            help="The channel; without it, all channels, ordered by message id.",
            autocompletion=complete_channel,
        ),
    ] = None,
    limit: Limit = 10,
    leased: Annotated[
        bool, typer.Option("--leased", help="Show leased messages, longest held first.")
    ] = False,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help=f"With --json: full contents, not only the first {PREVIEW_BYTES} bytes."
        ),
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show the next messages in the order of their release, without leasing them."""
    with open_queue(dsn, schema) as queue:
        found = queue.peek(
            channel, limit=limit, is_leased=leased, preview_bytes=None if whole else PREVIEW_BYTES
        )
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    columns = (">id", "channel", "status", "when", ">attempts", "key", "content")
    empty = "no leased messages" if leased else "no waiting messages"
    print_table(columns, [_row(one, now) for one in found], empty=empty)


def _row(one: LiveMessage, now: datetime) -> list[Cell]:
    attempts = f"{one.attempts}/{one.max_attempts}" if one.max_attempts is not None else str(one.attempts)
    text = formatting.one_line(formatting.content_text(one.content) or "", 60)
    return [str(one.id), one.channel, one.status, timing(one, now), attempts, one.key, text]


def timing(one: LiveMessage, now: datetime) -> str:
    """Return how long the message is still leased, when it is due, or how long it has waited."""
    if one.unlock_at is not None:
        left_s = (one.unlock_at - now).total_seconds()
        state = (
            f"{formatting.duration(left_s)} left"
            if left_s >= 0
            else f"expired {formatting.duration(-left_s)} ago"
        )
        return f"{one.worker or 'unnamed worker'}, {state}"
    due_s = one.dequeue_at / 1000
    if one.status is MessageStatus.SCHEDULED:
        left_s = max(0.0, due_s - now.timestamp())
        return (
            f"in {formatting.duration(left_s)}"
            if left_s < FAR_S
            else f"due {formatting.timestamp_ms(one.dequeue_at)}"
        )
    waited = formatting.duration(max(0.0, now.timestamp() - max(due_s, one.created_at.timestamp())))
    return f"waiting {waited}" if one.dequeue_at >= 0 else f"waiting {waited}, priority {-one.dequeue_at}"
