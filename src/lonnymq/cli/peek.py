"""peek: look at messages and lease none."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import LiveMessage, MessageStatus
from lonnymq.cli import words
from lonnymq.cli.complete import channels
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema
from lonnymq.cli.show import Cell, emit, show_table

PREVIEW_BYTES = 1_000
# From here on a date says more than a number of days.
FAR_S = 366 * 86_400


def peek(
    channel: Annotated[
        str | None,
        typer.Argument(help="The channel; without it all of them, by id.", autocompletion=channels),
    ] = None,
    limit: Limit = 10,
    leased: Annotated[
        bool, typer.Option("--leased", help="Those that are being worked, the longest first.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help=f"JSON: contents beyond {PREVIEW_BYTES} bytes too.")
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Look at the next messages, in the order of their release, and lease none."""
    with opened(dsn, schema) as queue:
        found = queue.peek(
            channel, limit=limit, is_leased=leased, preview_bytes=None if whole else PREVIEW_BYTES
        )
    if as_json:
        emit(found)
        return
    now = datetime.now(UTC)
    columns = (">id", "channel", "status", "when", ">attempts", "key", "content")
    empty = "no message is leased" if leased else "no message waits"
    show_table(columns, [_row(one, now) for one in found], empty=empty)


def _row(one: LiveMessage, now: datetime) -> list[Cell]:
    most = f"{one.attempts}/{one.max_attempts}" if one.max_attempts is not None else str(one.attempts)
    text = words.one_line(words.content_text(one.content) or "", 60)
    return [str(one.id), one.channel, one.status, when(one, now), most, one.key, text]


def when(one: LiveMessage, now: datetime) -> str:
    """Return what matters: how long it is still leased, when it is due, or how long it has waited."""
    if one.unlock_at is not None:
        left_s = (one.unlock_at - now).total_seconds()
        state = f"{words.span(left_s)} left" if left_s >= 0 else f"expired {words.span(-left_s)} ago"
        return f"{one.worker or 'a worker'}, {state}"
    due_s = one.dequeue_at / 1000
    if one.status is MessageStatus.SCHEDULED:
        left_s = max(0.0, due_s - now.timestamp())
        return f"in {words.span(left_s)}" if left_s < FAR_S else f"due {words.moment(one.dequeue_at)}"
    waited = words.span(max(0.0, now.timestamp() - max(due_s, one.created_at.timestamp())))
    return f"waits {waited}" if one.dequeue_at >= 0 else f"waits {waited}, priority {-one.dequeue_at}"
