"""channel: set a channel's policy, pause it, or explain why it waits."""

import inspect
from typing import Annotated, Any

import typer

from lonnymq import ChannelDeleteOutcome, ChannelPolicy, Explanation
from lonnymq.cli import formatting
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelName, Dsn, Json, Schema, Yes
from lonnymq.cli.output import Cell, print_error, print_json, print_record, print_text
from lonnymq.cli.quoting import shell_argument
from lonnymq.model import POLICY_FIELDS, PolicyField

app = typer.Typer(help="Set a channel's policy, pause it, or explain why it waits.", no_args_is_help=True)

NONE = "none"
METAVAR = f"NUMBER|{NONE}"


def _parse_number(text: str) -> int | str:
    if text == NONE:
        return NONE
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor {NONE!r}") from None


def _with_policy_options(command: Any) -> Any:
    """Replace a command's `**changes` by one option for each number of a policy.

    Flags have commands of their own instead, such as pause and resume.
    """
    signature = inspect.signature(command)
    name, *others, _ = signature.parameters.values()
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[Any, _option(field)],
        )
        for field in POLICY_FIELDS.values()
        if not field.is_flag
    ]
    command.__signature__ = signature.replace(parameters=[name, *options, *others])
    return command


def _option(field: PolicyField) -> Any:
    return typer.Option(
        f"--{field.name.replace('_', '-')}",
        parser=_parse_number,
        metavar=METAVAR,
        help=f"{field.meaning[0].upper()}{field.meaning[1:]}.",
        show_default=False,
    )


@app.command("set")
@_with_policy_options
def set_(
    name: ChannelName,
    *,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
    **changes: Any,
) -> None:
    """Change a channel's policy: options not given stay as they are, 'none' restores a default.

    Creates the channel if it does not exist. Takes effect at the next dequeue.
    """
    given: Any = {
        key: None if value == NONE else value for key, value in changes.items() if value is not None
    }
    with open_queue(dsn, schema) as queue:
        channel = queue.channel(name)
        channel.set(**given)
        status = channel.status()
    assert status is not None
    if as_json:
        print_json({"channel": name, **formatting.json_value(status.policy)})
    else:
        print_record({"channel": name, **_policy_fields(status.policy)})


@app.command()
def pause(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Stop releasing messages of a channel until it is resumed; leased messages continue."""
    with open_queue(dsn, schema) as queue:
        queue.channel(name).pause()
    print_text(f"channel {name!r} is paused; to resume it: lonnymq channel resume {shell_argument(name)}")


@app.command()
def resume(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Resume a paused channel."""
    with open_queue(dsn, schema) as queue:
        queue.channel(name).resume()
    print_text(f"channel {name!r} is resumed")


@app.command()
def delete(name: ChannelName, yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Delete a channel and its policy if it has no messages; dead letters and history stay."""
    require_confirmation(f"Delete channel {name!r} and its policy?", is_confirmed=yes)
    with open_queue(dsn, schema) as queue:
        outcome = queue.channel(name).delete()
        if outcome is ChannelDeleteOutcome.UNKNOWN and queue.channel(name).status() is not None:
            # Its messages wait, but no dequeue has created its row yet.
            outcome = ChannelDeleteOutcome.NOT_EMPTY
    if outcome is ChannelDeleteOutcome.DELETED:
        print_text(f"channel {name!r} is deleted")
        return
    problem, advice, code = {
        ChannelDeleteOutcome.NOT_EMPTY: (
            "still has messages, so it was not deleted",
            "`lonnymq peek` shows them",
            CommandExit.NO,
        ),
        ChannelDeleteOutcome.UNKNOWN: (
            "does not exist",
            "`lonnymq channels` lists all channels",
            CommandExit.NO,
        ),
        ChannelDeleteOutcome.BUSY: ("is locked by another transaction", "try again", CommandExit.BUSY),
    }[outcome]
    print_error(f"channel {name!r} {problem}", advice)
    raise typer.Exit(code)


@app.command()
def explain(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Explain why a channel's next message is not being released."""
    with open_queue(dsn, schema) as queue:
        explanation = queue.channel(name).explain()
        status = queue.channel(name).status()
    if as_json:
        print_json({"channel": name, **formatting.json_value(explanation)})
        return
    fields: dict[str, Cell] = {"channel": name, "reason": f"{explanation.reason}: {explanation.detail}"}
    if status is not None:
        fields |= {
            "waiting": explanation.waiting,
            "leased": explanation.leased,
            "next message": _next_message(explanation),
            "last release": formatting.timestamp(status.last_release_at),
            **_policy_fields(status.policy),
        }
    print_record(fields)


def _next_message(explanation: Explanation) -> str | None:
    if explanation.head_id is None or explanation.head_dequeue_at is None:
        return None
    # A negative time is a priority.
    is_time = explanation.head_dequeue_at >= 0
    due = (
        f"due {formatting.timestamp_ms(explanation.head_dequeue_at)}"
        if is_time
        else f"priority {-explanation.head_dequeue_at}"
    )
    return f"{explanation.head_id}, {due}"


def _policy_fields(policy: ChannelPolicy) -> dict[str, Cell]:
    fields = vars(policy).copy()
    cap = fields.pop("max_concurrency")
    rate = formatting.rate_limit(fields.pop("release_interval_ms"), fields.pop("release_burst"))
    others = {
        name.removeprefix("is_").replace("_", " "): ("yes" if value else "no")
        if POLICY_FIELDS[name].is_flag
        else value
        for name, value in fields.items()
    }
    return {"cap": cap, "rate": rate, **others}
