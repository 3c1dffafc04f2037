"""workers: the processes that work on the queue, and how to have them stop."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from lonnymq import DrainOutcome, WorkerState, WorkerStatus, formatting
from lonnymq.cli.acting import act
from lonnymq.cli.command_group import CommandGroup
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema, Yes
from lonnymq.cli.output import Cell, build_table, console, print_error, print_json, print_table
from lonnymq.cli.watching import RECONNECTING, readings, show_frames

COLUMNS = ("worker", "state", ">busy", ">slots", ">held", "oldest", "started", "seen", "version", "tasks")
STYLES = {WorkerState.WORKING: "green", WorkerState.DRAINING: "yellow", WorkerState.GONE: "red"}
MAX_TASKS_WIDTH = 60
NOBODY = "no worker has reported in the last hour"

app = typer.Typer(cls=CommandGroup)


@app.callback(invoke_without_command=True)
def workers(
    context: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh the list until Ctrl-C stops it.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, help="With --watch: seconds between refreshes.")
    ] = 2.0,
    count: Annotated[
        int | None,
        typer.Option(
            "--count", min=1, help="With --watch: stop after this many refreshes.", show_default=False
        ),
    ] = None,
    limit: Limit = 1000,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List the processes that work on the queue, as they last reported themselves; or drain them.

    A process reports every five seconds. One that has not for 15 seconds is gone, and listed for an hour.
    With --watch and --json, one line is printed per refresh.
    """
    if context.invoked_subcommand is not None:
        return
    if count is not None and not watch:
        raise typer.BadParameter("--count works only with --watch")
    with open_queue(dsn, schema) as queue:
        for_ever = watch and count is None
        found = readings(lambda: queue.workers(limit=limit), interval, None if for_ever else count or 1)
        if as_json:
            for one in found:
                if one is not None:
                    print_json(one)
        elif watch:
            show_frames(console(), map(_frame, found), is_endless=for_ever)
        else:
            shown = next(found)
            print_table(COLUMNS, rows(shown or [], datetime.now(UTC)), empty=NOBODY)


def _frame(found: Sequence[WorkerStatus] | None) -> Group:
    if found is None:
        return Group(RECONNECTING)
    states = Counter(one.state for one in found)
    working = [one for one in found if one.state is WorkerState.WORKING]
    figures = ", ".join(f"{states[state]:,} {state}" for state in WorkerState)
    slots = f"{sum(one.busy for one in working):,} of {sum(one.slots for one in working):,} slots busy"
    table = build_table(COLUMNS, rows(found, datetime.now(UTC))) if found else Text(NOBODY, style="dim")
    return Group(Text(f"{figures}; {slots}"), Text(), table)


@app.command()
def drain(
    worker: Annotated[
        str | None,
        typer.Argument(
            help="A process, or the beginning of its name up to a colon, such as a host.", show_default=False
        ),
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="All processes.")] = False,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Ask processes to take no more messages, to finish those that they have, and to end.

    They end with exit code 0 and are not replaced by their supervisor; a service manager may start others.
    """
    if (worker is None) is not is_all:
        raise typer.BadParameter("give either a worker or --all")
    if is_all:
        require_confirmation("Drain all workers?", is_confirmed=yes)
    with act(dsn, schema, "worker_drain", worker) as acting:
        asked = acting.queue.drain_workers(worker, connection=acting.connection)
        acting.outcomes += [str(one.outcome) for one in asked]
    if as_json:
        print_json(asked)
    elif asked:
        print_table(("worker", "outcome"), [(one.worker, str(one.outcome)) for one in asked], empty="")
    if not asked:
        which = "no worker reports" if worker is None else f"no worker has the name {worker!r}"
        print_error(which, "`lonnymq workers` lists all workers")
        raise typer.Exit(CommandExit.NO)
    if any(one.outcome is DrainOutcome.BUSY for one in asked):
        raise typer.Exit(CommandExit.BUSY)


def rows(found: Sequence[WorkerStatus], now: datetime) -> list[list[Cell]]:
    return [
        [
            one.worker,
            Text(one.state, style=STYLES[one.state]),
            one.busy,
            one.slots,
            one.held,
            _oldest(one, now),
            _age(one.started_at, now),
            _age(one.seen_at, now),
            one.version,
            formatting.one_line(", ".join(one.tasks), MAX_TASKS_WIDTH),
        ]
        for one in found
    ]


def _oldest(one: WorkerStatus, now: datetime) -> str | None:
    """Return which message the process has held longest, and for how long."""
    if not one.holds:
        return None
    held = one.holds[0]
    return f"{held.id} of {held.channel}, {_age(held.leased_at, now)}"


def _age(at: datetime, now: datetime) -> str:
    return f"{formatting.duration(max(0.0, (now - at).total_seconds()))} ago"
