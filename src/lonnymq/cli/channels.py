"""channels: each tenant, its numbers, its limits, and why it waits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from lonnymq import ChannelStatus, Reason
from lonnymq.cli import words
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema
from lonnymq.cli.show import Cell, emit, show_table

COLUMNS = ("channel", ">waiting", ">leased", ">cap", ">rate", ">oldest", "why it waits")
STYLES = {
    Reason.READY: "green",
    Reason.PAUSED: "yellow",
    Reason.CAPPED: "cyan",
    Reason.THROTTLED: "cyan",
    Reason.SCHEDULED: "blue",
}


class Order(StrEnum):
    NAME = "name"
    MESSAGES = "messages"


def channels(
    limit: Limit = 100,
    order: Annotated[
        Order, typer.Option("--order", help="By name, or those with most messages first.")
    ] = Order.NAME,
    after: Annotated[
        str,
        typer.Option("--after", help="By name: begin after this one, for the next page.", show_default=False),
    ] = "",
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List channels: waiting, leased, cap, rate limit, oldest, and why they wait."""
    if after and order is not Order.NAME:
        raise typer.BadParameter("--after goes with --order name")
    with opened(dsn, schema) as queue:
        found = (
            queue.channels(after=after, limit=limit) if order is Order.NAME else queue.busiest(limit=limit)
        )
    if as_json:
        emit(found)
    else:
        show_table(COLUMNS, rows(found), empty="no channel yet: the first message makes one")


def rows(found: Sequence[ChannelStatus]) -> list[list[Cell]]:
    now = datetime.now(UTC)
    return [
        [
            one.channel,
            one.waiting,
            one.leased,
            one.policy.max_concurrency,
            words.limit(one.policy.release_interval_ms, one.policy.release_burst),
            oldest(one, now),
            Text(one.reason, style=STYLES.get(one.reason, "dim")),
        ]
        for one in found
    ]


def oldest(one: ChannelStatus, now: datetime) -> str | None:
    """Return for how long the next message has been due; scheduled ones are not yet."""
    if one.head_created_at is None or one.reason is Reason.SCHEDULED:
        return None
    due = one.head_created_at.timestamp()
    if one.head_dequeue_at is not None:
        due = max(due, one.head_dequeue_at / 1000)
    return words.span(max(0.0, now.timestamp() - due))
