"""history: what is recorded of finished attempts, and for how long."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from lonnymq import HistoryMode, formatting
from lonnymq.cli import parse
from lonnymq.cli.acting import act, first_names
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.output import print_json, print_table, print_text

# Readers whose lag is shown.
MAX_LAGS = 10_000

app = typer.Typer(help="The record of finished attempts, in one partition per day.", no_args_is_help=True)


@app.command("set")
def set_(
    mode: Annotated[HistoryMode, typer.Argument(help="What to record of each attempt.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Choose what is recorded of attempts from now on: nothing, metadata or everything."""
    with act(dsn, schema, "queue_set", None, {"history": str(mode)}) as acting:
        acting.queue.set(history=mode, connection=acting.connection)
    print_text(f"history is {mode}")


@app.command("list")
def list_(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """List the partitions, oldest first."""
    with open_queue(dsn, schema) as queue:
        found = queue.history.partitions()
    if as_json:
        print_json(found)
        return
    rows = [(one.name, _state(one.is_over, one.is_attached, one.is_detaching)) for one in found]
    print_table(("partition", "state"), rows, empty="no partitions: `lonnymq history prepare` creates them")


@app.command()
def prepare(
    days: Annotated[int, typer.Option("--days", min=0, max=366, help="Number of days ahead.")] = 14,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Create partitions for today and the coming days, as running workers do once a day."""
    with open_queue(dsn, schema) as queue:
        created = queue.history.prepare(days=days)
    if as_json:
        print_json({"made": created})
    else:
        print_text(
            f"{formatting.quantity(created, 'partition')} created"
            if created
            else "all partitions already exist"
        )


@app.command()
def prune(
    older_than: Annotated[
        timedelta,
        typer.Option(
            "--older-than",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="Drop days that ended longer ago than this: 90d.",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Drop old days of history without making workers wait (owner only)."""
    require_confirmation(
        f"Drop all history older than {formatting.duration(older_than.total_seconds())}?", is_confirmed=yes
    )
    with open_queue(dsn, schema) as queue:
        before = queue.history.partitions()
        try:
            pruned = queue.history.prune(older_than)
        finally:
            # Partitions are dropped outside of transactions, one after the other, and some may stay.
            left = {one.name for one in queue.history.partitions()}
            _record_dropped(dsn, schema, [one.name for one in before if one.name not in left])
    if as_json:
        print_json({"pruned": pruned})
    else:
        print_text(f"dropped {', '.join(pruned)}" if pruned else "nothing is that old")


@app.command()
def readers(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """List the readers of history, how far behind each is, and the transaction that blocks all of them."""
    with open_queue(dsn, schema) as queue:
        found, blocker = queue.history.readers(), queue.history.blocker()
        lags = queue.history.lag(limit=MAX_LAGS)
    if as_json:
        print_json({"readers": found, "lag_s": lags, "blocker": blocker})
        return
    rows = [
        (
            one.name,
            f"{one.behind:,}",
            formatting.duration(lags[one.name]) if one.name in lags else None,
            formatting.timestamp(one.followed_at),
        )
        for one in found
    ]
    print_table(("reader", "rows behind", "time behind", "last moved"), rows, empty="no readers")
    if blocker is not None:
        print_text(f"no reader can pass the oldest open transaction that writes: {blocker}")


@app.command()
def forget(
    reader: Annotated[str, typer.Argument(help="The reader's name.", show_default=False)],
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Forget a reader that will not come back, so that prune no longer waits for it."""
    require_confirmation(
        f"Forget reader {reader!r}, and allow prune to drop what it has not read?", is_confirmed=yes
    )
    with act(dsn, schema, "history_forget", reader) as acting:
        is_known = acting.queue.history.forget(reader, connection=acting.connection)
        acting.outcomes.append("forgotten" if is_known else "unknown")
    if as_json:
        print_json({"forgotten": is_known})
    else:
        print_text(f"reader {reader!r} is forgotten" if is_known else f"there is no reader {reader!r}")


@app.command()
def rebase(yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Make the rows of a restored dump readable; all readers must restart (owner only)."""
    require_confirmation(
        "Was this database restored from a dump? All readers must restart afterwards. Continue?",
        is_confirmed=yes,
    )
    with act(dsn, schema, "history_rebase") as acting:
        rows = acting.queue.history.rebase(connection=acting.connection)
        acting.outcomes.append("rebased")
    if as_json:
        print_json({"rows": rows})
    else:
        print_text(f"{formatting.quantity(rows, 'row')} rebased")


def _record_dropped(dsn: str, schema: str, names: Sequence[str]) -> None:
    if names:
        with act(dsn, schema, "history_prune", None, {"partitions": first_names(names)}) as acting:
            acting.outcomes += ["dropped"] * len(names)


def _state(is_over: bool, is_attached: bool, is_detaching: bool) -> str:
    if is_detaching or not is_attached:
        return "partly dropped: run `lonnymq history prune` again"
    return "closed" if is_over else "open"
