"""Crons: messages that are created on a schedule; pause and resume."""

from starlette.responses import Response

from lonnymq.cron import schedule
from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View
from lonnymq.errors import LonnyError

LIMIT = 100


async def show(view: View) -> Response:
    after = view.query("after")
    found = list(await view.reader.cron.list(limit=LIMIT + 1, after=after))
    has_more = len(found) > LIMIT
    found = found[:LIMIT]
    return view.render(
        "crons.html",
        found=found,
        in_words=_in_words,
        after=after,
        first=view.href("/crons") if after else None,
        next=view.href("/crons", after=found[-1].name) if has_more else None,
    )


async def act(view: View, form: Form) -> Response:
    name = form.exact("name")
    crons = view.operator.cron
    match form.text("action"):
        case "pause":
            async with view.act("cron_pause", name) as action:
                action.outcomes.append(await crons.pause(name, connection=action.connection))
            message = "The cron is paused: it creates no messages. Those that exist stay."
        case "resume":
            async with view.act("cron_resume", name) as action:
                action.outcomes.append(await crons.resume(name, connection=action.connection))
            message = "The cron ticks again. Ticks that were missed are not caught up."
        case _:
            raise Refused(400, "There is no such action", "Nothing was changed.")
    here = view.href("/crons", after=view.query("after"))
    if "unknown" in action.outcomes:
        return view.back_to(here, "This cron is no longer there. Nothing was changed.", "failed")
    return view.back_to(here, message)


def _in_words(expression: str) -> str | None:
    try:
        return schedule.explain(expression)
    except LonnyError:
        return None
