"""message: show, cancel or run single messages now, and read their results."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lonnymq import CancelOutcome, MessageStatus, Progress, ResultError, RunNowOutcome, formatting
from lonnymq.cli import parse
from lonnymq.cli.acting import act, described_ids
from lonnymq.cli.completion import complete_channel
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema, Yes
from lonnymq.cli.outcomes import report_outcomes
from lonnymq.cli.output import print_error, print_json, print_record, print_text
from lonnymq.cli.peek import timing

app = typer.Typer(
    help="Show or cancel single messages, run them now, and read their results.", no_args_is_help=True
)


@app.command()
def show(
    message_id: Annotated[int, typer.Argument(help="The message's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Show a live message: its status, attempts, last error, content and state."""
    with open_queue(dsn, schema) as queue:
        found = queue.show(message_id)
        is_dead = found is None and message_id >= 0 and queue.dead().show(message_id) is not None
    if found is None:
        advice = (
            f"it is a dead letter: `lonnymq dead show {message_id}`"
            if is_dead
            else "it has already finished, or never existed"
        )
        print_error(f"message {message_id} is not live", advice)
        raise typer.Exit(CommandExit.NO)
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    print_record(
        {
            "message": str(found.id),
            "channel": found.channel,
            "key": found.key,
            "status": f"{found.status}, {timing(found, now)}",
            "attempts": f"{found.attempts} of {found.max_attempts or 'unlimited'}",
            "created": formatting.timestamp_with_age(found.created_at, now),
            "leased": formatting.timestamp_with_age(found.leased_at, now),
            "last error": found.error,
            "state": formatting.content_text(found.state_content),
            "headers": formatting.headers_text(found.headers),
            "content": formatting.content_with_size(found.content, found.content_bytes),
        }
    )


@app.command()
def status(
    message_id: Annotated[int, typer.Argument(help="The message's id.")],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Say what has become of a message, whether it is live or has ended."""
    with open_queue(dsn, schema) as queue:
        report = queue.status_of(message_id)
    if as_json:
        print_json(report)
    else:
        attempt = None if report.attempt is None else str(report.attempt)
        print_record(
            {
                "message": str(report.id),
                "status": report.status,
                "at": formatting.timestamp_with_age(report.at, datetime.now(UTC)),
                "attempt": attempt,
                "worker": report.worker,
                "progress": _progress_text(report.progress),
                "last error": report.error,
            }
        )
    if report.status is MessageStatus.UNKNOWN:
        raise typer.Exit(CommandExit.NO)


def _progress_text(progress: Progress | None) -> str | None:
    """Format how far an attempt is: 40 %, resizing."""
    if progress is None:
        return None
    note = f", {progress.note}" if progress.note else ""
    return f"{100 * progress.fraction:.4g} %{note}"


@app.command()
def result(
    message_id: Annotated[int, typer.Argument(help="The message's id.")],
    wait: Annotated[
        timedelta | None,
        typer.Option(
            "--wait", metavar="DURATION", parser=parse.duration, help="Wait until the message has ended."
        ),
    ] = None,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Print the result of a message that was enqueued with --keep-result, as JSON unless it is a text.

    The exit code is 1 if there is none, and the reason is on stderr.
    """
    with open_queue(dsn, schema) as queue:
        try:
            found = queue.result(message_id, wait=wait)
        except ResultError as error:
            print_error(str(error), f"`lonnymq message status {message_id}` says what has become of it")
            raise typer.Exit(CommandExit.NO) from error
    if isinstance(found, str) and not as_json:
        print_text(found)
    else:
        print_json(found)


@app.command("run-now")
def run_now(
    message_ids: Annotated[list[int], typer.Argument(help="Message ids.", show_default=False)],
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Make scheduled messages due now; their channel's pause, cap and rate limit still apply."""
    with act(dsn, schema, "message_run_now", *described_ids(message_ids)) as acting:
        answers = acting.queue.run_now(message_ids, connection=acting.connection)
        acting.outcomes += answers
    report_outcomes(dict(zip(map(str, message_ids), answers, strict=True)), RunNowOutcome.DUE, as_json)


@app.command()
def cancel(
    message_ids: Annotated[list[int] | None, typer.Argument(help="Message ids.", show_default=False)] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel",
            "-c",
            help="With --key: the channel of the message.",
            autocompletion=complete_channel,
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Instead of ids: the message with this key.")
    ] = None,
    yes: Yes = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Remove messages from the queue permanently, by id or by key.

    If a worker holds one of them, it is told at its next heartbeat.
    """
    is_by_key = channel is not None and key is not None
    if bool(message_ids) == is_by_key or (channel is None) != (key is None):
        raise typer.BadParameter("give either ids, or --channel and --key")
    what = (
        formatting.quantity(len(message_ids), "message")
        if message_ids
        else f"the message with key {key!r} of {channel!r}"
    )
    require_confirmation(f"Cancel {what}?", is_confirmed=yes)
    verb = "message_cancel" if message_ids else "message_cancel_key"
    target = described_ids(message_ids) if message_ids else (channel, {"key": key})
    with act(dsn, schema, verb, *target) as acting:
        queue, on = acting.queue, acting.connection
        if message_ids:
            outcomes = dict(zip(map(str, message_ids), queue.cancel(message_ids, connection=on), strict=True))
        else:
            assert channel is not None
            assert key is not None
            outcomes = {key: queue.cancel_key(channel, key, connection=on)}
        acting.outcomes += outcomes.values()
    report_outcomes(outcomes, CancelOutcome.CANCELLED, as_json)
