"""What goes to the terminal: JSON for programs, calm tables for people, trouble to stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lonnymq.cli.quoting import json_text
from lonnymq.cli.words import plain
from lonnymq.texts import visible

# A pipe has no width: nothing is cut there.
ENDLESS = 10_000
# To what a column of text may be squeezed, and what lies between two.
LEAST = 8
GAP = 3

Cell = str | Text | int | None


def console(*, is_error: bool = False) -> Console:
    stream = sys.stderr if is_error else sys.stdout
    # Whoever starts it may have closed them.
    width = None if stream is not None and stream.isatty() else ENDLESS
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def emit(value: Any) -> None:
    """Print one JSON document on one line; what the stream cannot take is escaped."""
    text = json_text(plain(value))
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text))
    print(text, flush=True)


def say(text: str | Text = "") -> None:
    console().print(text if isinstance(text, Text) else visible(text), soft_wrap=True)


def present(made: RenderableType) -> None:
    """Print a table; into a pipe without the blanks that fill its last column."""
    to = console()
    if to.is_terminal:
        if isinstance(made, Table):
            # Squeezed further, columns would vanish: let the terminal break the lines.
            to.width = max(to.width, sum((column.min_width or 0) + GAP for column in made.columns))
        to.print(made)
        return
    with to.capture() as captured:
        to.print(made)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()), flush=True)


def warn(problem: str, *advice: str) -> None:
    """Say what went wrong, and below it what to do, on stderr."""
    to = console(is_error=True)
    to.print(Text.assemble(("error: ", "bold red"), visible(problem)), soft_wrap=True)
    for line in advice:
        to.print(Text("  " + visible(line), style="dim"), soft_wrap=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, title: str | None = None) -> Table:
    """Return a table; a column whose name begins with `>` is of numbers."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", title=title)
    # Rows are lines: a name with a line break in it must not look like two.
    shown = [[as_text(cell, keep="") for cell in row] for row in rows]
    for place, column in enumerate(columns):
        is_number, name = column.startswith(">"), column.lstrip(">")
        widest = max([len(name), *(row[place].cell_len for row in shown)])
        made.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
            min_width=widest if is_number else min(LEAST, widest),
        )
    for row in shown:
        made.add_row(*row)
    return made


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, empty: str) -> None:
    if rows:
        present(table(columns, rows))
    else:
        say(Text(empty, style="dim"))


def show_record(fields: Mapping[str, Cell]) -> None:
    """Print names and values, one pair a line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=max(map(len, fields)))
    grid.add_column(overflow="fold", min_width=LEAST)
    for name, value in fields.items():
        grid.add_row(name, as_text(value))
    present(grid)


def as_text(value: Cell, keep: str = "\n\t") -> Text:
    """Return a cell as it is shown."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    return Text(f"{value:,}" if isinstance(value, int) else visible(value, keep=keep))
