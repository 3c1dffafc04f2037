"""dead: list, show, redrive and purge dead letters."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lonnymq import IdPage, PurgeOutcome, RedriveOutcome, formatting
from lonnymq.cli import parse
from lonnymq.cli.acting import BATCH, act, act_in_batches, described_ids
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
WithError = Annotated[
    str | None,
    typer.Option(
        "--error",
        "-e",
        help="Instead of ids: those whose error ends with this line, as `lonnymq dead groups` shows it.",
        show_default=False,
    ),
]
IDS_OR_CHANNEL = "give either ids, or --channel or --error"


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
            formatting.one_line(formatting.last_line(one.error) or "", 70),
        )
        for one in found
    ]
    print_table((">id", "channel", "buried", ">attempts", "error"), rows, empty="no dead letters")


@app.command()
def groups(
    channel: ChannelOption = None,
    limit: Limit = 20,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Group the newest 10,000 dead letters by the last line of their error, largest groups first."""
    with open_queue(dsn, schema) as queue:
        found = queue.dead(channel).groups(limit=limit)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    rows = [
        (
            one.letters,
            one.channels,
            f"{formatting.duration(max(0.0, (now - one.last_at).total_seconds()))} ago",
            str(one.last_id),
            one.error or "(no error)",
        )
        for one in found.groups
    ]
    print_table((">letters", ">channels", "last buried", ">last id", "error"), rows, empty="no dead letters")
    if not found.is_complete:
        print_text("there are more dead letters: these are groups of the 10,000 that were buried last")


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
    error: WithError = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Put dead letters back into their channels, with attempts reset."""
    seen_at: datetime | None = None
    if bool(message_ids) == (channel is not None or error is not None):
        raise typer.BadParameter(IDS_OR_CHANNEL)
    if channel is not None and error is None:
        require_confirmation(f"Redrive all dead letters of channel {channel!r}?", is_confirmed=yes)
        count = act_in_batches(
            dsn,
            schema,
            "dead_redrive_channel",
            channel,
            {},
            RedriveOutcome.REDRIVEN,
            lambda acting: acting.queue.dead(channel).redrive_all(limit=BATCH, connection=acting.connection),
        )
        if as_json:
            print_json({"redriven": count})
        else:
            print_text(f"{formatting.quantity(count, 'dead letter')} of channel {channel!r} redriven")
        return
    if error is not None:
        found = _ids_with_error(dsn, schema, channel, error)
        message_ids, seen_at = found.items, found.at
        require_confirmation(f"Redrive {_described(message_ids, error)}?", is_confirmed=yes)
    with act(dsn, schema, "dead_redrive", *described_ids(message_ids or [])) as acting:
        answers = acting.queue.dead().redrive(message_ids or [], before=seen_at, connection=acting.connection)
        acting.outcomes += answers
    report_outcomes(
        dict(zip(map(str, message_ids or []), answers, strict=True)), RedriveOutcome.REDRIVEN, as_json
    )


@app.command()
def purge(
    message_ids: Ids = None,
    channel: ChannelOrIds = None,
    error: WithError = None,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            "--older-than",
            parser=parse.duration,
            metavar=parse.DURATION,
            help="With --channel alone: only those buried longer ago than this.",
        ),
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Delete dead letters permanently."""
    seen_at: datetime | None = None
    if bool(message_ids) == (channel is not None or error is not None):
        raise typer.BadParameter(IDS_OR_CHANNEL)
    if older_than is not None and (channel is None or error is not None):
        raise typer.BadParameter("--older-than works only with --channel, and not with --error")
    if channel is not None and error is None:
        age = f" buried more than {formatting.duration(older_than.total_seconds())} ago" if older_than else ""
        whose = f"all dead letters of channel {channel!r}"
        require_confirmation(f"Delete {whose}{age} permanently?", is_confirmed=yes)
        before = None if older_than is None else datetime.now(UTC) - older_than
        count = act_in_batches(
            dsn,
            schema,
            "dead_purge_channel",
            channel,
            {"buried_before": before.isoformat()} if before else {},
            PurgeOutcome.PURGED,
            lambda acting: acting.queue.dead(channel).purge_all(
                before=before, limit=BATCH, connection=acting.connection
            ),
        )
        if as_json:
            print_json({"purged": count})
        else:
            print_text(f"{formatting.quantity(count, 'dead letter')} of channel {channel!r} deleted")
        return
    if error is not None:
        found = _ids_with_error(dsn, schema, channel, error)
        message_ids, seen_at = found.items, found.at
    require_confirmation(f"Delete {_described(message_ids or [], error)} permanently?", is_confirmed=yes)
    with act(dsn, schema, "dead_purge", *described_ids(message_ids or [])) as acting:
        answers = acting.queue.dead().purge(message_ids or [], before=seen_at, connection=acting.connection)
        acting.outcomes += answers
    report_outcomes(
        dict(zip(map(str, message_ids or []), answers, strict=True)), PurgeOutcome.PURGED, as_json
    )


def _ids_with_error(dsn: str, schema: str, channel: str | None, error: str) -> IdPage:
    """Return the ids of the dead letters to act on, newest first: at most 10,000."""
    with open_queue(dsn, schema) as queue:
        found = queue.dead(channel).ids(error=error)
    if not found.items:
        print_error(f"no dead letter has the error {error!r}", "`lonnymq dead groups` lists their errors")
        raise typer.Exit(CommandExit.NO)
    return found


def _described(ids: Sequence[int], error: str | None) -> str:
    which = formatting.quantity(len(ids), "dead letter")
    return which if error is None else f"{which} with the error {error!r}"
