"""top: a live table of the busiest channels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from lonnymq import ChannelStatus, Queue, QueuePulse
from lonnymq.cli import channels
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import (
    COLUMN_GAP,
    PIPE_WIDTH,
    Cell,
    build_table,
    cell_text,
    console,
    print_json,
)
from lonnymq.cli.watching import RECONNECTING, readings, show_frames
from lonnymq.formatting import at_least, duration, quantity

# Columns that a narrow terminal leaves out, in this order, until names have at least this width.
OPTIONAL_COLUMNS = ("rate", "cap", "change", "oldest", "leased")
MIN_NAME_WIDTH = 16
ESTIMATED = "a large queue: the totals are estimates, and the channels are the busiest of a sample"


@dataclass(frozen=True)
class Sample:
    """One reading of the queue."""

    pulse: QueuePulse
    channels: list[ChannelStatus]


@dataclass(frozen=True)
class Rates:
    """Changes per second between two samples; `waiting` is the growth of each channel's backlog."""

    created: float
    released: float
    waiting: dict[str, float]


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, help="Seconds between refreshes.")
    ] = 1.0,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1000, help="Maximum number of channels.")
    ] = 20,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Stop after this many refreshes.", show_default=False)
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Watch the busiest channels: waiting, leased, cap, rate limit, oldest message, why they wait.

    The column "change" shows by how many messages per second a channel's backlog grows or shrinks. Ctrl-C
    stops it. With --json, one line is printed per refresh.
    """
    to = console()
    with open_queue(dsn, schema) as queue:
        samples = _with_rates(readings(lambda: _sample(queue, limit), interval, count))
        if as_json:
            for sample, rates in samples:
                if sample is not None:
                    print_json({"pulse": sample.pulse, "rates": rates, "channels": sample.channels})
        else:
            frames = (
                _frame(sample, rates, to.width if to.is_terminal else PIPE_WIDTH) for sample, rates in samples
            )
            show_frames(to, frames, is_endless=count is None)


def _with_rates(samples: Iterable[Sample | None]) -> Iterator[tuple[Sample | None, Rates | None]]:
    """Add the changes since the sample before; the first one has none."""
    previous = None
    for sample in samples:
        yield sample, rates_between(previous, sample) if previous and sample else None
        previous = sample or previous


def _sample(queue: Queue, limit: int) -> Sample:
    return Sample(queue.pulse(), queue.busiest(limit=limit))


def rates_between(previous: Sample, now: Sample) -> Rates:
    seconds = max(0.001, (now.pulse.at - previous.pulse.at).total_seconds())
    before = {one.channel: one.waiting for one in previous.channels}
    return Rates(
        max(0, now.pulse.created_total - previous.pulse.created_total) / seconds,
        max(0, now.pulse.leased_total - previous.pulse.leased_total) / seconds,
        {
            one.channel: (one.waiting - before[one.channel]) / seconds
            for one in now.channels
            if one.channel in before
        },
    )


def _frame(sample: Sample | None, rates: Rates | None, width: int) -> Group:
    if sample is None:
        return Group(RECONNECTING)
    pulse = sample.pulse
    figures = [
        quantity(pulse.channels, "channel"),
        f"{pulse.waiting:,} waiting",
        f"{pulse.leased:,} leased",
        f"{pulse.expired:,} expired",
        f"{pulse.dead:,} dead",
        f"{quantity(pulse.sleepers, 'worker')} asleep",
        f"{duration(pulse.turn_lag_s)} lag",
        f"{at_least(pulse.demand, is_complete=pulse.is_due_complete)} demand",
    ]
    if rates is not None:
        figures += [f"{rates.created:,.0f}/s created", f"{rates.released:,.0f}/s released"]
    columns = (*channels.COLUMNS[:2], ">change", *channels.COLUMNS[2:])
    rows = channels.rows(sample.channels)
    for row, one in zip(rows, sample.channels, strict=True):
        row.insert(2, _change(rates.waiting.get(one.channel) if rates is not None else None))
    note = [] if pulse.is_exact else [Text(ESTIMATED, style="dim")]
    return Group(*_lines(figures, width), *note, Text(), _fit_table(columns, rows, width))


def _lines(figures: Sequence[str], width: int) -> list[Text]:
    """Return the figures on as few lines as fit the terminal, without breaking a figure."""
    lines: list[Text] = []
    for figure in figures:
        number, _, word = figure.partition(" ")
        text = Text.assemble((number, "bold"), " ", (word, "dim"))
        if lines and lines[-1].cell_len + 2 + text.cell_len <= width:
            lines[-1].append_text(Text("  ")).append_text(text)
        else:
            lines.append(text)
    return lines


def _fit_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int) -> Table:
    """Return a table of one line per channel: columns that do not fit are left out, and long names cut."""
    shown = [[cell_text(cell, keep="") for cell in row] for row in rows]
    names = [column.lstrip(">") for column in columns]
    widths = [max(len(name), *(row[place].cell_len for row in shown), 0) for place, name in enumerate(names)]
    kept = list(range(len(columns)))

    def name_width() -> int:
        return width - sum(widths[place] + COLUMN_GAP for place in kept[1:])

    for name in OPTIONAL_COLUMNS:
        if name_width() < min(MIN_NAME_WIDTH, widths[0]):
            kept.remove(names.index(name))
    for row in shown:
        row[0].truncate(max(1, name_width()), overflow="ellipsis")
    return build_table([columns[place] for place in kept], [[row[place] for place in kept] for row in shown])


def _change(per_second: float | None) -> str | None:
    if per_second is None:
        return None
    return f"{per_second:+,.0f}/s" if abs(per_second) >= 0.5 else "0/s"
