"""Channel: why it waits, how long its messages waited, and its policy."""

from typing import cast

from starlette.responses import Response

from lonnymq.dashboard.form import Form
from lonnymq.dashboard.history import Ring
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View
from lonnymq.formatting import quantity
from lonnymq.model import NONE, POLICY_FIELDS, PolicyChanges, Reason

# How many of its messages, and of its leases, are shown.
MESSAGES = 10


async def show(view: View) -> Response:
    name = name_of(view)
    channel = view.reader.channel(name)
    sampler = view.dashboard.sampler
    pulse = (await sampler.look()).pulse
    status = await channel.status()
    explanation = await channel.explain()
    messages = await view.reader.peek(name, limit=MESSAGES, preview_bytes=0)
    leases = await view.reader.peek(name, limit=MESSAGES, is_leased=True, preview_bytes=0)
    if status is not None:
        sampler.history.add_channel(status, pulse)
    return view.render(
        "channel.html",
        200 if explanation.reason is not Reason.UNKNOWN else 404,
        channel=name,
        status=status,
        explanation=explanation,
        fields=POLICY_FIELDS,
        pulse=pulse,
        messages=messages,
        leases=leases,
        limit=MESSAGES,
        history=sampler.history,
        ring=sampler.history.channels.get(name, Ring()),
    )


async def act(view: View, form: Form) -> Response:
    name = name_of(view)
    channel = view.operator.channel(name)
    match form.text("action"):
        case "pause":
            async with view.act("channel_pause", name) as action:
                await channel.pause(connection=action.connection)
            message = "The channel is paused. Leased messages are still processed."
        case "resume":
            async with view.act("channel_resume", name) as action:
                await channel.resume(connection=action.connection)
            message = "The channel releases messages again."
        case "set":
            message = "Nothing was changed."
            if changes := _changes(form):
                message = f"{quantity(len(changes), 'field')} of the policy changed."
                async with view.act("channel_set", name, changes) as action:
                    await channel.set(connection=action.connection, **changes)
        case _:
            raise Refused(400, "There is no such action", "Nothing was changed.")
    return view.back_to(view.channel_href(name), message)


def _changes(form: Form) -> PolicyChanges:
    """Return the fields that the user changed, so that what others changed meanwhile is kept."""
    changes: dict[str, int | str | None] = {}
    for field in POLICY_FIELDS.values():
        if not field.is_flag:
            value = _limit(form, field.name)
            if value != _limit(form, f"was_{field.name}"):
                changes[field.name] = value
    return cast("PolicyChanges", changes)


def _limit(form: Form, name: str) -> int | str | None:
    return NONE if form.text(name, high=20).lower() == NONE else form.whole(name)


def name_of(view: View) -> str:
    """Return the channel that the address names."""
    name = view.arguments.get("name") or view.query("name")
    if not name:
        raise Refused(404, "There is no such page", "")
    return name
