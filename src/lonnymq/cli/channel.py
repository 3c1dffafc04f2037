"""channel: set a channel's policy, pause it, or explain why it waits."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer

from lonnymq import ChannelDeleteOutcome, ChannelPolicy, Explanation, PolicySource, formatting
from lonnymq.cli.acting import act
from lonnymq.cli.confirm import require_confirmation
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, ChannelName, Dsn, Json, Schema, Yes
from lonnymq.cli.output import Cell, print_error, print_json, print_record, print_text
from lonnymq.model import DEFAULT_POLICY_FIELDS, NONE, POLICY_FIELDS, PolicyField
from lonnymq.quoting import shell_argument

app = typer.Typer(help="Set a channel's policy, pause it, or explain why it waits.", no_args_is_help=True)

DEFAULT = "default"


def _parse_value(words: tuple[str, ...]) -> Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        if text in words:
            return text
        try:
            return int(text)
        except ValueError:
            allowed = " or ".join(repr(word) for word in words)
            raise typer.BadParameter(f"{text!r} is neither a whole number nor {allowed}") from None

    return parse


def _with_policy_options(words: Callable[[PolicyField], tuple[str, ...]]) -> Callable[[Any], Any]:
    """Replace a command's `**changes` by one option for each number of a policy.

    Flags have commands of their own instead, such as pause and resume. `words` are what a field may be given
    besides a number.
    """

    def decorate(command: Any) -> Any:
        signature = inspect.signature(command)
        *others, _ = signature.parameters.values()
        positional = [one for one in others if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        keywords = [one for one in others if one.kind is inspect.Parameter.KEYWORD_ONLY]
        options = [_option(field, words(field)) for field in DEFAULT_POLICY_FIELDS.values()]
        command.__signature__ = signature.replace(parameters=[*positional, *options, *keywords])
        return command

    return decorate


def _channel_words(field: PolicyField) -> tuple[str, ...]:
    return (NONE, DEFAULT) if field.can_be_lifted else (DEFAULT,)


def _option(field: PolicyField, words: tuple[str, ...]) -> inspect.Parameter:
    option = typer.Option(
        f"--{field.name.replace('_', '-')}",
        parser=_parse_value(words),
        metavar="|".join(("NUMBER", *words)),
        help=f"{field.meaning[0].upper()}{field.meaning[1:]}.",
        show_default=False,
    )
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Any, option]
    )


@app.command("set")
@_with_policy_options(_channel_words)
def set_(
    name: ChannelName,
    *,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
    **changes: Any,
) -> None:
    """Change a channel's policy: options not given stay as they are.

    'none' lifts a limit; 'default' removes the channel's own value, so that the queue's default policy
    applies. Creates the channel if it does not exist. Takes effect at the next dequeue.
    """
    given: Any = {
        key: None if value == DEFAULT else value for key, value in changes.items() if value is not None
    }
    with act(dsn, schema, "channel_set", name, given) as acting:
        channel = acting.queue.channel(name)
        channel.set(**given, connection=acting.connection)
        status = channel.status(connection=acting.connection)
    assert status is not None
    if as_json:
        print_json(
            {"channel": name, **formatting.json_value(status.policy), "sources": status.policy_sources}
        )
    else:
        print_record({"channel": name, **_policy_fields(status.policy, status.policy_sources)})


@app.command()
@_with_policy_options(lambda _: (NONE,))
def default(
    *,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
    **changes: Any,
) -> None:
    """Show or change the default policy: what applies to channels that have no value of their own.

    Options not given stay as they are; 'none' removes one. Takes effect at each channel's next turn.
    """
    given: Any = {
        key: None if value == NONE else value for key, value in changes.items() if value is not None
    }
    with act(dsn, schema, "queue_set", None, {"default_policy": given}) as acting:
        policy = acting.queue.set(default_policy=given, connection=acting.connection).default_policy
        acting.is_recorded = bool(given)
    fields = {name: value for name, value in vars(policy).items() if name in DEFAULT_POLICY_FIELDS}
    if as_json:
        print_json(fields)
    else:
        print_record(_policy_fields(policy, {}, names=DEFAULT_POLICY_FIELDS))


@app.command()
def pause(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Stop releasing messages of a channel until it is resumed; leased messages continue."""
    with act(dsn, schema, "channel_pause", name) as acting:
        acting.queue.channel(name).pause(connection=acting.connection)
    print_text(f"channel {name!r} is paused; to resume it: lonnymq channel resume {shell_argument(name)}")


@app.command()
def resume(name: ChannelName, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Resume a paused channel."""
    with act(dsn, schema, "channel_resume", name) as acting:
        acting.queue.channel(name).resume(connection=acting.connection)
    print_text(f"channel {name!r} is resumed")


@app.command()
def delete(name: ChannelName, yes: Yes = False, dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA) -> None:
    """Delete a channel and its policy if it has no messages; dead letters and history stay."""
    require_confirmation(f"Delete channel {name!r} and its policy?", is_confirmed=yes)
    with act(dsn, schema, "channel_delete", name) as acting:
        channel = acting.queue.channel(name)
        outcome = channel.delete(connection=acting.connection)
        acting.outcomes.append(outcome)
        if (
            outcome is ChannelDeleteOutcome.UNKNOWN
            and channel.status(connection=acting.connection) is not None
        ):
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
            **_policy_fields(status.policy, status.policy_sources),
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


def _policy_fields(
    policy: ChannelPolicy,
    sources: Mapping[str, PolicySource],
    names: Iterable[str] = POLICY_FIELDS,
) -> dict[str, Cell]:
    """Return a policy for display, and which of its values are not the channel's own."""
    values = {name: vars(policy)[name] for name in names}
    rate = formatting.rate_limit(values.pop("release_interval_ms"), values.pop("release_burst"))
    shown = {"cap": values.pop("max_concurrency"), "rate": rate} | {
        name.removeprefix("is_").replace("_", " "): ("yes" if value else "no")
        if POLICY_FIELDS[name].is_flag
        else value
        for name, value in values.items()
    }
    labels = {"max_concurrency": "cap", "release_interval_ms": "rate"}
    for name, source in sources.items():
        label = labels.get(name, name.replace("_", " "))
        if label in shown and source in (PolicySource.DEFAULT, PolicySource.LIFTED):
            note = "the queue's default" if source is PolicySource.DEFAULT else "lifted"
            value = "none" if shown[label] is None else shown[label]
            shown[label] = f"{value} ({note})"
    return shown
