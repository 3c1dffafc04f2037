"""Output: JSON for programs, tables for people, errors to stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lonnymq.formatting import json_value
from lonnymq.quoting import json_line
from lonnymq.texts import escape_hidden

# A pipe has no width, so nothing is cut.
PIPE_WIDTH = 10_000
# Width below which a text column is not squeezed, and the space between two columns.
MIN_COLUMN_WIDTH = 8
COLUMN_GAP = 3

Cell = str | Text | int | None


def console(*, is_error: bool = False) -> Console:
    stream = sys.stderr if is_error else sys.stdout
    # The caller may have closed the stream.
    width = None if stream is not None and stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """Print one JSON document on one line; characters that the encoding lacks are escaped."""
    text = json_line(json_value(value))
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text))
    print(text, flush=True)


def print_text(text: str | Text = "") -> None:
    console().print(text if isinstance(text, Text) else escape_hidden(text), soft_wrap=True)


def print_renderable(renderable: RenderableType) -> None:
    """Print a table; into a pipe without trailing blanks."""
    to = console()
    if to.is_terminal:
        if isinstance(renderable, Table):
            # Narrower, columns would vanish: let the terminal wrap the lines instead.
            to.width = max(
                to.width, sum((column.min_width or 0) + COLUMN_GAP for column in renderable.columns)
            )
        to.print(renderable)
        return
    with to.capture() as captured:
        to.print(renderable)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()), flush=True)


def print_error(problem: str, *advice: str) -> None:
    """Print an error and, below it, what to do, on stderr."""
    to = console(is_error=True)
    to.print(Text.assemble(("error: ", "bold red"), escape_hidden(problem)), soft_wrap=True)
    for line in advice:
        to.print(Text("  " + escape_hidden(line), style="dim"), soft_wrap=True)


def build_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, title: str | None = None) -> Table:
    """Return a table; a column whose name begins with `>` holds numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", title=title)
    # A name with a line break must not look like two rows.
    shown = [[cell_text(cell, keep="") for cell in row] for row in rows]
    for place, column in enumerate(columns):
        is_number, name = column.startswith(">"), column.lstrip(">")
        widest = max([len(name), *(row[place].cell_len for row in shown)])
        table.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
            min_width=widest if is_number else min(MIN_COLUMN_WIDTH, widest),
        )
    for row in shown:
        table.add_row(*row)
    return table


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, empty: str) -> None:
    if rows:
        print_renderable(build_table(columns, rows))
    else:
        print_text(Text(empty, style="dim"))


def print_record(fields: Mapping[str, Cell]) -> None:
    """Print names and values, one pair per line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=max(map(len, fields)))
    grid.add_column(overflow="fold", min_width=MIN_COLUMN_WIDTH)
    for name, value in fields.items():
        grid.add_row(name, cell_text(value))
    print_renderable(grid)


def cell_text(value: Cell, keep: str = "\n\t") -> Text:
    """Return a cell's text, harmless to a terminal."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    return Text(f"{value:,}" if isinstance(value, int) else escape_hidden(value, keep=keep))
