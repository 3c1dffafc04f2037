"""channel: one tenant's policy, and why it waits."""

import inspect
from typing import Annotated, Any

import typer

from lonnymq import ChannelDeleteOutcome, ChannelPolicy, Explanation
from lonnymq.cli import words
from lonnymq.cli.ask import require_yes
from lonnymq.cli.connect import opened
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelName, Dsn, Json, Schema, Yes
from lonnymq.cli.show import Cell, emit, say, show_record, warn
from lonnymq.model import POLICY_FIELDS, PolicyField

app = typer.Typer(help="A channel's policy, and why it waits.", no_args_is_help=True)

NONE = "none"
METAVAR = f"NUMBER|{NONE}"


def _number(text: str) -> int | str:
    if text == NONE:
        return NONE
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor {NONE!r}") from None


def _with_policy_options(command: Any) -> Any:
    """Replace a command's `**changes` by an option for each number of a policy.

    A flag has commands of its own instead, like pause and resume.
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
        parser=_number,
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
    """Change a channel's policy: what is given, the rest stays; 'none' takes a limit away.

    Makes the channel if there is none. Takes effect on the next dequeue.
    """
    given: Any = {
        key: None if value == NONE else value for key, value in changes.items() if value is not None
    }
    with opened(dsn, schema) as queue:
        channel = queue.channel(name)
        channel.set(**given)
        status = channel.status()
    assert status is not None
    if as_json:
        emit({"channel": name, **words.plain(status.policy)})
    else:
        show_record({"channel": name, **_policy(status.policy)})


@app.command()
def pause(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Release nothing of a channel until it is resumed; leased messages go on."""
    with opened(dsn, schema) as queue:
        queue.channel(name).pause()
    say(f"channel {name!r} is paused; `lonnymq channel resume` ends that")


@app.command()
def resume(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """End a pause."""
    with opened(dsn, schema) as queue:
        queue.channel(name).resume()
    say(f"channel {name!r} has been resumed")


@app.command()
def delete(name: ChannelName, yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Forget a channel and its policy, if it has no message. Dead letters and history stay."""
    require_yes(f"Forget channel {name!r} and its policy?", is_yes=yes)
    with opened(dsn, schema) as queue:
        outcome = queue.channel(name).delete()
        if outcome is ChannelDeleteOutcome.UNKNOWN and queue.channel(name).status() is not None:
            # Messages wait, and no worker has seen the channel yet.
            outcome = ChannelDeleteOutcome.NOT_EMPTY
    if outcome is ChannelDeleteOutcome.DELETED:
        say(f"channel {name!r} is deleted")
        return
    problem, advice, code = {
        ChannelDeleteOutcome.NOT_EMPTY: ("has messages, so it stays", "`lonnymq peek` shows them", Exit.NO),
        ChannelDeleteOutcome.UNKNOWN: ("does not exist", "`lonnymq channels` lists those that do", Exit.NO),
        ChannelDeleteOutcome.BUSY: ("is locked by another transaction", "try again", Exit.BUSY),
    }[outcome]
    warn(f"channel {name!r} {problem}", advice)
    raise typer.Exit(code)


@app.command()
def explain(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Say why a channel's next message is not being worked."""
    with opened(dsn, schema) as queue:
        found = queue.channel(name).explain()
        status = queue.channel(name).status()
    if as_json:
        emit({"channel": name, **words.plain(found)})
        return
    fields: dict[str, Cell] = {"channel": name, "reason": f"{found.reason}: {found.detail}"}
    if status is not None:
        fields |= {
            "waiting": found.waiting,
            "leased": found.leased,
            "next message": _head(found),
            "last release": words.instant(status.last_release_at),
            **_policy(status.policy),
        }
    show_record(fields)


def _head(found: Explanation) -> str | None:
    if found.head_id is None or found.head_dequeue_at is None:
        return None
    # Before 1970 there were no messages: that is a priority.
    is_time = found.head_dequeue_at >= 0
    when = f"due {words.moment(found.head_dequeue_at)}" if is_time else f"priority {-found.head_dequeue_at}"
    return f"{found.head_id}, {when}"


def _policy(policy: ChannelPolicy) -> dict[str, Cell]:
    fields = vars(policy).copy()
    cap = fields.pop("max_concurrency")
    rate = words.limit(fields.pop("release_interval_ms"), fields.pop("release_burst"))
    others = {
        name.removeprefix("is_").replace("_", " "): ("yes" if value else "no")
        if POLICY_FIELDS[name].is_flag
        else value
        for name, value in fields.items()
    }
    return {"cap": cap, "rate": rate, **others}
