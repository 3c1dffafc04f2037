"""dead: list, show, redrive and purge dead letters."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lonnymq import PurgeOutcome, RedriveOutcome
from lonnymq.cli import formatting, parse
from lonnymq.cli.completion import complete_channel
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelOption, Dsn, Json, Limit, Schema, Yes
from lonnymq.cli.outcomes import report_outcomes
from lonnymq.cli.output import print_error, print_json, print_record, print_table, print_text

app = typer.Typer(help="List, show, redrive or purge dead letters.", no_args_is_help=True)

Ids = Annotated[list[int] | None, typer.Argument(help="Dead letter ids.", show_default=False)]
ChannelOrIds = Annotated[
    str | None,
    typer.Option(
        "--channel",
        "-c",
        help="Instead of ids: all dead letters of this channel.",
        autocompletion=complete_channel,
        show_default=False,
    ),
]
IDS_OR_CHANNEL = "give either ids or --channel, for all dead letters of a channel"


@app.command("list")
def list_(
    channel: ChannelOption = None,
    limit: Limit = 100,
    after: Annotated[int, typer.Option("--after", help="Start after this id, to get the next page.")] = 0,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """List dead letters by id, with the last line of their error."""
    with open_queue(dsn, schema) as queue:
        found = queue.dead(channel).list(limit=limit, after=after)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    rows = [
        (
            str(one.id),
            one.channel,
            f"{formatting.duration(max(0.0, (now - one.buried_at).total_seconds()))} ago",
            one.attempts,
            formatting.one_line(last_line(one.error) or "", 70),
        )
        for one in found
    ]
    print_table((">id", "channel", "buried", ">attempts", "error"), rows, empty="no dead letters")


@app.command()
def show(
    message_id: Annotated[int, typer.Argument(min=0, help="The dead letter's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show a dead letter with its full error, content and state."""
    with open_queue(dsn, schema) as queue:
        found = queue.dead().show(message_id)
    if found is None:
        print_error(f"there is no dead letter {message_id}", "`lonnymq dead list` lists all dead letters")
        raise typer.Exit(CommandExit.NO)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    print_record(
        {
            "dead letter": str(found.id),
            "channel": found.channel,
            "key": found.key,
            "attempts": found.attempts,
            "created": formatting.timestamp_with_age(found.created_at, now),
            "buried": formatting.timestamp_with_age(found.buried_at, now),
            "error": found.error,
            "state": formatting.content_text(found.state_content),
            "headers": formatting.headers_text(found.headers),
            "content": formatting.content_with_size(found.content, len(found.content)),
        }
    )


@app.command()
def redrive(
    message_ids: Ids = None,
    channel: ChannelOrIds = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Put dead letters back into their channels, with attempts reset."""
    if bool(message_ids) == (channel is not None):
        raise typer.BadParameter(IDS_OR_CHANNEL)
    if message_ids:
        with open_queue(dsn, schema) as queue:
            answers = queue.dead().redrive(message_ids)
        report_outcomes(
            dict(zip(map(str, message_ids), answers, strict=True)), RedriveOutcome.REDRIVEN, as_json
        )
        return
    require_confirmation(f"Redrive all dead letters of channel {channel!r}?", is_confirmed=yes)
    with open_queue(dsn, schema) as queue:
        count = queue.dead(channel).redrive_all()
    if as_json:
        print_json({"redriven": count})
    else:
        print_text(f"{formatting.quantity(count, 'dead letter')} of channel {channel!r} redriven")


@app.command()
def purge(
    message_ids: Ids = None,
    channel: ChannelOrIds = None,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            "--older-than",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="With --channel: only those buried longer ago than this.",
        ),
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Delete dead letters permanently."""
    if bool(message_ids) == (channel is not None):
        raise typer.BadParameter(IDS_OR_CHANNEL)
    if older_than is not None and channel is None:
        raise typer.BadParameter("--older-than works only with --channel")
    which = formatting.quantity(len(message_ids), "dead letter") if message_ids else "all dead letters"
    whose = f" of channel {channel!r}" if channel is not None else ""
    age = f" buried more than {formatting.duration(older_than.total_seconds())} ago" if older_than else ""
    require_confirmation(f"Delete {which}{whose}{age} permanently?", is_confirmed=yes)
    with open_queue(dsn, schema) as queue:
        if message_ids:
            answers = queue.dead().purge(message_ids)
        else:
            before = None if older_than is None else datetime.now(UTC) - older_than
            count = queue.dead(channel).purge_all(before=before)
    if message_ids:
        report_outcomes(dict(zip(map(str, message_ids), answers, strict=True)), PurgeOutcome.PURGED, as_json)
    elif as_json:
        print_json({"purged": count})
    else:
        print_text(f"{formatting.quantity(count, 'dead letter')}{whose} deleted")


def last_line(error: str | None) -> str | None:
    """Return the line of a traceback that names the error."""
    lines = (error or "").strip().splitlines()
    return lines[-1] if lines else None
