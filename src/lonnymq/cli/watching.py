"""Commands that read the queue again and again, and redraw the terminal."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from lonnymq import ConnectionLost
from lonnymq.cli.output import print_renderable

RECONNECTING = Text("no connection to the database; reconnecting", style="yellow")
Reading = TypeVar("Reading")


def readings(read: Callable[[], Reading], interval_s: float, count: int | None) -> Iterator[Reading | None]:
    """Yield what `read` returns; None while the database is unreachable, unless it is so at the start."""
    yield read()
    for _ in range(count - 1) if count is not None else iter(int, 1):
        time.sleep(interval_s)
        found: Reading | None
        try:
            found = read()
        except ConnectionLost:
            found = None
        yield found


def show_frames(to: Console, frames: Iterable[RenderableType], *, is_endless: bool) -> None:
    """Show each frame in the place of the one before it; a pipe gets all of them."""
    if not to.is_terminal:
        for frame in frames:
            print_renderable(frame)
        return
    with Live(console=to, screen=is_endless, auto_refresh=False) as live:
        for frame in frames:
            live.update(frame, refresh=True)
