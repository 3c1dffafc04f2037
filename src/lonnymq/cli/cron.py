"""cron: messages that are created again and again."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import CronDeleteOutcome, CronSetOutcome, CronStatus, LonnyError
from lonnymq.cli import words
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Limit, Schema, Yes
from lonnymq.cli.show import Cell, emit, say, show_table, warn
from lonnymq.cron import schedule

app = typer.Typer(help="Crons: messages that are created again and again.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The cron's name.")]


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[
        str, typer.Option("--after", help="Begin after this name, for the next page.", show_default=False)
    ] = "",
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List crons by name: when they tick, where to, when last and when next."""
    with opened(dsn, schema) as queue:
        found = queue.cron.list(limit=limit, after=after)
    if as_json:
        emit(found)
        return
    now = datetime.now(UTC)
    columns = ("name", "expression", "in words", "timezone", "channel", "last", "next")
    show_table(
        columns,
        [_row(one, now) for one in found],
        empty="no crons; workers declare their App's crons when they start",
    )


@app.command()
def pause(name: Name, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Create nothing until it is resumed; what was created goes on."""
    with opened(dsn, schema) as queue:
        outcome = queue.cron.pause(name)
    _require_known(name, outcome)
    say(f"cron {name!r} is paused; `lonnymq cron resume` ends that")


@app.command()
def resume(name: Name, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """End a pause; ticks of that time are not caught up."""
    with opened(dsn, schema) as queue:
        outcome = queue.cron.resume(name)
    _require_known(name, outcome)
    say(f"cron {name!r} has been resumed")


@app.command()
def delete(name: Name, yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Forget a cron; a worker whose App declares it makes it again."""
    require_yes(f"Forget cron {name!r}?", is_yes=yes)
    with opened(dsn, schema) as queue:
        outcome = queue.cron.delete(name)
    _require_known(name, outcome)
    say(f"cron {name!r} is deleted")


def _require_known(name: str, outcome: CronSetOutcome | CronDeleteOutcome) -> None:
    if outcome == "unknown":
        warn(f"there is no cron {name!r}", "`lonnymq cron list` shows those there are")
        raise typer.Exit(Exit.NO)
    if outcome == "busy":
        warn(f"cron {name!r} is locked by another transaction", "try again")
        raise typer.Exit(Exit.BUSY)


def _row(one: CronStatus, now: datetime) -> list[Cell]:
    next_at = "paused" if one.is_paused else words.ago(one.next_at, now)
    last_at = words.ago(one.last_at, now)
    return [one.name, one.expression, _explained(one.expression), one.timezone, one.channel, last_at, next_at]


def _explained(expression: str) -> str | None:
    try:
        return schedule.explain(expression)
    except LonnyError:
        return None
