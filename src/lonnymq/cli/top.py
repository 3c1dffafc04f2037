"""top: a live table of the busiest channels."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lonnymq import ChannelStatus, ConnectionLost, Queue, QueueActivity, QueueStatus
from lonnymq.cli import channels
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.show import ENDLESS, GAP, Cell, as_text, console, emit, present, table
from lonnymq.cli.words import counted

# What a narrow terminal does without, the first first, until this much is left for names.
DISPENSABLE = ("rate", "cap", "change", "oldest", "leased")
LEAST_NAME = 16


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
                present(_frame(sample, rates, ENDLESS))
        else:
            with Live(console=to, screen=count is None, auto_refresh=False) as live:
                for sample, rates in looks:
                    live.update(_frame(sample, rates, to.width), refresh=True)


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


def _frame(sample: Sample | None, rates: Rates | None, width: int) -> Group:
    if sample is None:
        return Group(Text("no connection to the database; trying again", style="yellow"))
    status = sample.status
    figures = [
        counted(status.channels, "channel"),
        f"{status.waiting:,} waiting",
        f"{status.leased:,} leased",
        f"{status.expired:,} expired",
        f"{status.dead:,} dead",
        f"{counted(status.sleepers, 'worker')} asleep",
    ]
    if rates is not None:
        figures += [f"{rates.created:,.0f}/s created", f"{rates.released:,.0f}/s released"]
    columns = (*channels.COLUMNS[:2], ">change", *channels.COLUMNS[2:])
    rows = channels.rows(sample.channels)
    for row, one in zip(rows, sample.channels, strict=True):
        row.insert(2, _change(rates.waiting.get(one.channel) if rates is not None else None))
    return Group(*_lines(figures, width), Text(), _fitted(columns, rows, width))


def _lines(figures: Sequence[str], width: int) -> list[Text]:
    """Return figures on as few lines as the terminal has room for, none of them broken."""
    lines: list[Text] = []
    for figure in figures:
        number, _, word = figure.partition(" ")
        text = Text.assemble((number, "bold"), " ", (word, "dim"))
        if lines and lines[-1].cell_len + 2 + text.cell_len <= width:
            lines[-1].append_text(Text("  ")).append_text(text)
        else:
            lines.append(text)
    return lines


def _fitted(columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int) -> Table:
    """Return a table of one line per channel: columns that do not fit are left out, names cut."""
    shown = [[as_text(cell, keep="") for cell in row] for row in rows]
    names = [column.lstrip(">") for column in columns]
    widths = [max(len(name), *(row[place].cell_len for row in shown), 0) for place, name in enumerate(names)]
    kept = list(range(len(columns)))

    def room() -> int:
        return width - sum(widths[place] + GAP for place in kept[1:])

    for name in DISPENSABLE:
        if room() < min(LEAST_NAME, widths[0]):
            kept.remove(names.index(name))
    for row in shown:
        row[0].truncate(max(1, room()), overflow="ellipsis")
    return table([columns[place] for place in kept], [[row[place] for place in kept] for row in shown])


def _change(per_second: float | None) -> str | None:
    if per_second is None:
        return None
    return f"{per_second:+,.0f}/s" if abs(per_second) >= 0.5 else "0/s"
