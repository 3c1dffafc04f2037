"""dead: dead letters."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lonnymq import PurgeOutcome, RedriveOutcome
from lonnymq.cli import parse, words
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelOption, Dsn, Json, Limit, Schema, Yes
from lonnymq.cli.outcomes import report
from lonnymq.cli.show import emit, say, show_record, show_table, warn

app = typer.Typer(help="Dead letters: look, try again, throw away.", no_args_is_help=True)

Ids = Annotated[list[int] | None, typer.Argument(help="Ids of dead letters.", show_default=False)]
OneOf = "give ids, or --channel for all of a channel's"


@app.command("list")
def list_(
    channel: ChannelOption = None,
    limit: Limit = 100,
    after: Annotated[int, typer.Option("--after", help="Begin after this id, for the next page.")] = 0,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List dead letters by id, with their last error."""
    with opened(dsn, schema) as queue:
        found = queue.dead(channel).list(limit=limit, after=after)
    if as_json:
        emit(found)
        return
    now = datetime.now(UTC)
    rows = [
        (
            str(one.id),
            one.channel,
            f"{words.span(max(0.0, (now - one.buried_at).total_seconds()))} ago",
            one.attempts,
            words.one_line(last_line(one.error) or "", 70),
        )
        for one in found
    ]
    show_table((">id", "channel", "buried", ">attempts", "error"), rows, empty="no dead letters")


@app.command()
def show(
    message_id: Annotated[int, typer.Argument(min=0, help="The dead letter's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show a dead letter: its whole error, its content and state."""
    with opened(dsn, schema) as queue:
        found = queue.dead().show(message_id)
    if found is None:
        warn(f"there is no dead letter {message_id}", "`lonnymq dead list` shows those there are")
        raise typer.Exit(Exit.NO)
    if as_json:
        emit(found)
        return
    now = datetime.now(UTC)
    show_record(
        {
            "dead letter": str(found.id),
            "channel": found.channel,
            "key": found.key,
            "attempts": found.attempts,
            "created": words.ago(found.created_at, now),
            "buried": words.ago(found.buried_at, now),
            "error": found.error,
            "state": words.content_text(found.state_content),
            "content": f"{words.size(len(found.content))}\n{words.content_text(found.content)}",
        }
    )


@app.command()
def redrive(
    message_ids: Ids = None,
    channel: ChannelOption = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Put dead letters back into their channels, attempts forgotten: these, or all of a channel."""
    if bool(message_ids) == (channel is not None):
        raise typer.BadParameter(OneOf)
    if message_ids:
        with opened(dsn, schema) as queue:
            answers = queue.dead().redrive(message_ids)
        report(dict(zip(map(str, message_ids), answers, strict=True)), RedriveOutcome.REDRIVEN, as_json)
        return
    require_yes(f"Try all dead letters of channel {channel!r} again?", is_yes=yes)
    with opened(dsn, schema) as queue:
        count = queue.dead(channel).redrive_all()
    if as_json:
        emit({"redriven": count})
    else:
        say(f"{words.counted(count, 'dead letter')} of channel {channel!r} put back")


@app.command()
def purge(
    message_ids: Ids = None,
    channel: ChannelOption = None,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            "--older-than",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="With --channel: only those buried longer ago than that.",
        ),
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Delete dead letters for good: these, or all of a channel."""
    if bool(message_ids) == (channel is not None):
        raise typer.BadParameter(OneOf)
    if older_than is not None and channel is None:
        raise typer.BadParameter("--older-than goes with --channel")
    which = words.counted(len(message_ids), "dead letter") if message_ids else "all dead letters"
    whose = f" of channel {channel!r}" if channel is not None else ""
    age = f" buried more than {words.span(older_than.total_seconds())} ago" if older_than else ""
    require_yes(f"Delete {which}{whose}{age} for good?", is_yes=yes)
    with opened(dsn, schema) as queue:
        if message_ids:
            answers = queue.dead().purge(message_ids)
        else:
            before = None if older_than is None else datetime.now(UTC) - older_than
            count = queue.dead(channel).purge_all(before=before)
    if message_ids:
        report(dict(zip(map(str, message_ids), answers, strict=True)), PurgeOutcome.PURGED, as_json)
    elif as_json:
        emit({"purged": count})
    else:
        say(f"{words.counted(count, 'dead letter')}{whose} deleted")


def last_line(error: str | None) -> str | None:
    """Return the line of a traceback that says what happened."""
    lines = (error or "").strip().splitlines()
    return lines[-1] if lines else None
