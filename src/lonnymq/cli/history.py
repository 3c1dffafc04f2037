"""history: whether finished attempts are recorded, and for how long."""

from datetime import timedelta
from typing import Annotated

import typer

from lonnymq import HistoryMode
from lonnymq.cli import parse, words
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.show import emit, say, show_table

app = typer.Typer(help="The record of finished attempts: one partition a day.", no_args_is_help=True)


@app.command("set")
def set_(
    mode: Annotated[HistoryMode, typer.Argument(help="What to keep of each attempt.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Record nothing, the metadata, or everything of attempts from now on."""
    with opened(dsn, schema) as queue:
        queue.set(history=mode)
    say(f"history is {mode}")


@app.command("list")
def list_(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """List the partitions, oldest first."""
    with opened(dsn, schema) as queue:
        found = queue.history.partitions()
    if as_json:
        emit(found)
        return
    rows = [(one.name, _state(one.is_over, one.is_attached, one.is_detaching)) for one in found]
    show_table(("partition", "state"), rows, empty="no partition: `lonnymq history prepare` makes them")


@app.command()
def prepare(
    days: Annotated[int, typer.Option("--days", min=0, max=366, help="Days ahead.")] = 14,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Have a partition for today and the next days; once a day is plenty."""
    with opened(dsn, schema) as queue:
        made = queue.history.prepare(days=days)
    if as_json:
        emit({"made": made})
    else:
        say(f"{words.counted(made, 'partition')} made" if made else "all partitions already exist")


@app.command()
def prune(
    older_than: Annotated[
        timedelta,
        typer.Option(
            "--older-than",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="Drop days that hold nothing younger: 90d.",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Drop old days of history, without making a worker wait; needs the queue's owner."""
    require_yes(f"Drop all history older than {words.span(older_than.total_seconds())}?", is_yes=yes)
    with opened(dsn, schema) as queue:
        pruned = queue.history.prune(older_than)
    if as_json:
        emit({"pruned": pruned})
    else:
        say(f"dropped {', '.join(pruned)}" if pruned else "nothing is that old")


@app.command()
def readers(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """List who follows history, how far behind each is, and whose transaction holds all of them back."""
    with opened(dsn, schema) as queue:
        found, blocker = queue.history.readers(), queue.history.blocker()
    if as_json:
        emit({"readers": found, "blocker": blocker})
        return
    rows = [(one.name, f"{one.behind:,}", words.instant(one.followed_at)) for one in found]
    show_table(("reader", "rows behind", "last moved"), rows, empty="nobody follows history")
    if blocker is not None:
        say(f"nobody reads beyond the oldest transaction that writes: {blocker}")


@app.command()
def forget(
    reader: Annotated[str, typer.Argument(help="Its name.", show_default=False)],
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Say that a reader will not come back: prune need not wait for it."""
    require_yes(f"Let go of what reader {reader!r} has not read?", is_yes=yes)
    with opened(dsn, schema) as queue:
        is_known = queue.history.forget(reader)
    if as_json:
        emit({"forgotten": is_known})
    else:
        say(f"{reader} is forgotten" if is_known else f"no reader is called {reader}")


@app.command()
def rebase(yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """After restoring a dump: make the restored rows readable; all readers must restart."""
    require_yes("Was this database restored from a dump, and shall all readers restart?", is_yes=yes)
    with opened(dsn, schema) as queue:
        rows = queue.history.rebase()
    if as_json:
        emit({"rows": rows})
    else:
        say(f"{words.counted(rows, 'row')} rebased")


def _state(is_over: bool, is_attached: bool, is_detaching: bool) -> str:
    if is_detaching or not is_attached:
        return "half dropped: prune goes on with it"
    return "over" if is_over else "open"
