"""cron: messages created on a schedule."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lonnymq import CatchUp, CronDeleteOutcome, CronSetOutcome, CronStatus, LonnyError, formatting
from lonnymq.cli import parse
from lonnymq.cli.acting import act
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import (
    DEFAULT_SCHEMA,
    ChannelName,
    Dsn,
    Headers,
    IsText,
    Json,
    Limit,
    MaxAttempts,
    Payload,
    Schema,
    Yes,
)
from lonnymq.cli.output import Cell, print_error, print_json, print_table, print_text
from lonnymq.cron import schedule
from lonnymq.quoting import shell_argument

app = typer.Typer(
    help="List, set, pause, resume or delete crons: messages created on a schedule.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The cron's name.")]


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[
        str, typer.Option("--after", help="Start after this name, to get the next page.", show_default=False)
    ] = "",
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List crons by name: expression, channel, last and next tick."""
    with open_queue(dsn, schema) as queue:
        found = queue.cron.list(limit=limit, after=after)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    columns = ("name", "expression", "schedule", "timezone", "channel", "last", "next")
    print_table(
        columns,
        [_row(one, now) for one in found],
        empty="no crons; workers declare their App's crons when they start",
    )


@app.command("set")
def set_(
    name: Name,
    expression: Annotated[str, typer.Argument(help="When it ticks: 5 fields, or 6 with seconds.")],
    channel: ChannelName,
    payload: Payload,
    text: IsText = False,
    timezone: Annotated[str, typer.Option("--timezone", help="Of the expression.")] = "UTC",
    catch_up: Annotated[
        CatchUp, typer.Option("--catch-up", help="Which missed ticks are created late.")
    ] = CatchUp.LATEST,
    max_attempts: MaxAttempts = None,
    header: Headers = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
) -> None:
    """Create or change a cron: a message at every tick, from now on.

    lonnymq cron set nightly '0 3 * * *' acme '{"report": 1}' --timezone Europe/Berlin
    """
    content, headers = parse.payload_or_stdin(payload, is_text=text), parse.headers(header or [])
    arguments = {"expression": expression, "timezone": timezone, "channel": channel}
    with act(dsn, schema, "cron_set", name, arguments) as acting:
        outcome = acting.queue.cron.set(
            name,
            expression,
            channel=channel,
            payload=content,
            timezone=timezone,
            catch_up=catch_up,
            max_attempts=max_attempts,
            headers=headers,
            connection=acting.connection,
        )
        acting.outcomes.append(outcome)
    if outcome is CronSetOutcome.UNCHANGED:
        print_text(f"cron {name!r} was already set this way")
    else:
        print_text(f"cron {name!r} is set: {_in_words(expression) or expression} ({timezone})")


@app.command()
def pause(name: Name, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Create no messages until the cron is resumed; existing messages stay."""
    with act(dsn, schema, "cron_pause", name) as acting:
        outcome = acting.queue.cron.pause(name, connection=acting.connection)
        acting.outcomes.append(outcome)
    _require_found(name, outcome)
    print_text(f"cron {name!r} is paused; to resume it: lonnymq cron resume {shell_argument(name)}")


@app.command()
def resume(name: Name, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Resume a paused cron; ticks missed during the pause are not caught up."""
    with act(dsn, schema, "cron_resume", name) as acting:
        outcome = acting.queue.cron.resume(name, connection=acting.connection)
        acting.outcomes.append(outcome)
    _require_found(name, outcome)
    print_text(f"cron {name!r} is resumed")


@app.command()
def delete(name: Name, yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Delete a cron; a worker whose App declares it creates it again."""
    require_confirmation(f"Delete cron {name!r}?", is_confirmed=yes)
    with act(dsn, schema, "cron_delete", name) as acting:
        outcome = acting.queue.cron.delete(name, connection=acting.connection)
        acting.outcomes.append(outcome)
    _require_found(name, outcome)
    print_text(f"cron {name!r} is deleted")


def _require_found(name: str, outcome: CronSetOutcome | CronDeleteOutcome) -> None:
    if outcome == "unknown":
        print_error(f"there is no cron {name!r}", "`lonnymq cron list` lists all crons")
        raise typer.Exit(CommandExit.NO)
    if outcome == "busy":
        print_error(f"cron {name!r} is locked by another transaction", "try again")
        raise typer.Exit(CommandExit.BUSY)


def _row(one: CronStatus, now: datetime) -> list[Cell]:
    next_at = "paused" if one.is_paused else formatting.timestamp_with_age(one.next_at, now)
    last_at = formatting.timestamp_with_age(one.last_at, now)
    return [one.name, one.expression, _in_words(one.expression), one.timezone, one.channel, last_at, next_at]


def _in_words(expression: str) -> str | None:
    try:
        return schedule.explain(expression)
    except LonnyError:
        return None
