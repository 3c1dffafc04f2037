"""channels: every channel with its counts, its limits, and why it waits."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from lonnymq import ChannelStatus, Reason, formatting
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema
from lonnymq.cli.output import Cell, print_json, print_table

COLUMNS = ("channel", ">waiting", ">leased", ">cap", ">rate", ">oldest", "reason")
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
        Order, typer.Option("--order", help="Sort by name, or by number of messages, most first.")
    ] = Order.NAME,
    after: Annotated[
        str,
        typer.Option(
            "--after",
            help="With --order name: start after this name, to get the next page.",
            show_default=False,
        ),
    ] = "",
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List channels: waiting, leased, cap, rate limit, oldest message, and why they wait."""
    if after and order is not Order.NAME:
        raise typer.BadParameter("--after works only with --order name")
    with open_queue(dsn, schema) as queue:
        found = (
            queue.channels(after=after, limit=limit) if order is Order.NAME else queue.busiest(limit=limit)
        )
    if as_json:
        print_json(found)
    else:
        print_table(COLUMNS, rows(found), empty="no channels yet: the first message creates one")


def rows(found: Sequence[ChannelStatus]) -> list[list[Cell]]:
    now = datetime.now(UTC)
    return [
        [
            one.channel,
            one.waiting,
            one.leased,
            one.policy.max_concurrency,
            formatting.rate_limit(one.policy.release_interval_ms, one.policy.release_burst),
            oldest(one, now),
            Text(one.reason, style=STYLES.get(one.reason, "dim")),
        ]
        for one in found
    ]


def oldest(one: ChannelStatus, now: datetime) -> str | None:
    """Return how long the next message has been due; None if it is scheduled for later."""
    if one.head_created_at is None or one.reason is Reason.SCHEDULED:
        return None
    due = one.head_created_at.timestamp()
    if one.head_dequeue_at is not None:
        due = max(due, one.head_dequeue_at / 1000)
    return formatting.duration(max(0.0, now.timestamp() - due))
