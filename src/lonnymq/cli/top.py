"""top: a live table of the busiest channels."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from lonnymq import ChannelStatus, ConnectionLost, Queue, QueueActivity, QueueStatus
from lonnymq.cli import channels
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.show import console, emit, present, table


@dataclass(frozen=True)
class Sample:
    """One reading of the queue."""

    status: QueueStatus
    activity: QueueActivity
    channels: list[ChannelStatus]


@dataclass(frozen=True)
class Rates:
    """What happens per second, from two samples; `waiting` is the change of each channel's backlog."""

    created: float
    released: float
    waiting: dict[str, float]


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, help="Seconds between two looks.")
    ] = 1.0,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Number of channels.")] = 20,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="End after this many looks.", show_default=False)
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Watch the busiest channels: waiting, leased, cap, rate limit, oldest, why they wait.

    Change is by how much a channel's waiting messages grow or shrink each second. Ctrl-C ends it.
    With --json one line per look.
    """
    to = console()
    with opened(dsn, schema) as queue:
        looks = _looks(queue, limit, interval, count)
        if as_json:
            for sample, rates in looks:
                if sample is not None:
                    emit({"status": sample.status, "rates": rates, "channels": sample.channels})
        elif not to.is_terminal:
            for sample, rates in looks:
                present(_frame(sample, rates))
        else:
            with Live(console=to, screen=count is None, auto_refresh=False) as live:
                for sample, rates in looks:
                    live.update(_frame(sample, rates), refresh=True)


def _looks(
    queue: Queue, limit: int, interval_s: float, count: int | None
) -> Iterator[tuple[Sample | None, Rates | None]]:
    """Yield samples; none for a look at which the database was away, once it has been there."""
    last = _sample(queue, limit)
    yield last, None
    for _ in range(count - 1) if count is not None else iter(int, 1):
        time.sleep(interval_s)
        try:
            sample = _sample(queue, limit)
        except ConnectionLost:
            yield None, None
            continue
        yield sample, rates_between(last, sample)
        last = sample


def _sample(queue: Queue, limit: int) -> Sample:
    return Sample(queue.status(), queue.activity(), queue.busiest(limit=limit))


def rates_between(last: Sample, now: Sample) -> Rates:
    seconds = max(0.001, (now.activity.at - last.activity.at).total_seconds())
    before = {one.channel: one.waiting for one in last.channels}
    return Rates(
        max(0, now.activity.created - last.activity.created) / seconds,
        max(0, now.activity.leased - last.activity.leased) / seconds,
        {
            one.channel: (one.waiting - before[one.channel]) / seconds
            for one in now.channels
            if one.channel in before
        },
    )


def _frame(sample: Sample | None, rates: Rates | None) -> Group:
    if sample is None:
        return Group(Text("no connection to the database; trying again", style="yellow"))
    status = sample.status
    figures = [
        (f"{status.channels:,}", "channels"),
        (f"{status.waiting:,}", "waiting"),
        (f"{status.leased:,}", "leased"),
        (f"{status.expired:,}", "expired"),
        (f"{status.dead:,}", "dead"),
        (f"{status.sleepers:,}", "workers asleep"),
    ]
    if rates is not None:
        figures += [(f"{rates.created:,.0f}/s", "created"), (f"{rates.released:,.0f}/s", "released")]
    head = Text("  ").join(Text.assemble((number, "bold"), " ", (word, "dim")) for number, word in figures)
    columns = (*channels.COLUMNS[:2], ">change", *channels.COLUMNS[2:])
    rows = channels.rows(sample.channels)
    for row, one in zip(rows, sample.channels, strict=True):
        row.insert(2, _change(rates.waiting.get(one.channel) if rates is not None else None))
    return Group(head, Text(), table(columns, rows))


def _change(per_second: float | None) -> str | None:
    if per_second is None:
        return None
    return f"{per_second:+,.0f}/s" if abs(per_second) >= 0.5 else "0/s"
