"""Failures: dead letters, grouped by the last line of their error; redrive or purge what the filter shows."""

from collections import Counter

from starlette.responses import Response

from lonnymq import formatting
from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.selection import MAX_IDS, decode_ids, encode_instant, seen_at, select
from lonnymq.dashboard.view import View

LIMIT = 50
MAX_GROUPS = 100
# A record of an action lists this many ids.
MAX_LISTED = 100
# The value of a filter for dead letters without an error.
NO_ERROR = "none"


async def show(view: View) -> Response:
    channel, error = _filter(view)
    dead = view.reader.dead(channel or None)
    groups = await dead.groups(limit=MAX_GROUPS, letters=MAX_IDS) if error is None else None
    page = await dead.page(error=error, before=view.cursor(), limit=LIMIT, preview_bytes=0)
    # Only operators can confirm, and what they confirm does not change while the page is open.
    is_update = view.request.headers.get("hx-request") == "true"
    ids = None if is_update or not view.visitor.may_act else await dead.ids(error=error, limit=MAX_IDS)
    selected, selection = select(ids.items if ids else [])
    return view.render(
        "failures.html",
        channel=channel,
        error=error,
        groups=groups,
        group_href=lambda line: _href(view, channel, line),
        found=page.items,
        last_line=formatting.last_line,
        selected=len(selected),
        is_selection_complete=ids is None or (ids.next is None and len(selected) == len(ids.items)),
        selection=selection,
        seen=encode_instant(ids.at) if ids else "",
        here_href=_href(view, channel, error),
        first=_href(view, channel, error) if view.query("before") else None,
        next=_href(view, channel, error, before=page.next) if page.next else None,
    )


async def act(view: View, form: Form) -> Response:
    """Redrive or purge exactly the dead letters that the page showed when it was loaded."""
    channel, error = _filter(view)
    ids = decode_ids(form.exact("ids"))
    before = seen_at(form)
    form.require_typed(str(len(ids)))
    arguments = {
        "channel": channel or None,
        "error": error,
        "count": len(ids),
        "ids": [str(id_) for id_ in ids[:MAX_LISTED]],
    }
    dead = view.operator.dead()
    match form.text("action"):
        case "redrive":
            async with view.act("dead_redrive", channel or None, arguments) as action:
                action.outcomes += await dead.redrive(ids, before=before, connection=action.connection)
        case "purge":
            async with view.act("dead_purge", channel or None, arguments) as action:
                action.outcomes += await dead.purge(ids, before=before, connection=action.connection)
        case _:
            raise Refused(400, "There is no such action", "Nothing was changed.")
    counts = Counter(action.outcomes)
    done = counts["redriven"] + counts["purged"]
    return view.back_to(_href(view, channel, error), _answer(counts), "done" if done else "failed")


LEFT = {
    "duplicate": "stay, because a live message has the same key",
    "dropped": "stay, because their channel is full",
    "busy": "stay, because another transaction has them locked",
    "unknown": "were no longer there, or have failed again since",
}


def _answer(counts: Counter[str]) -> str:
    done = [f"{counts[name]:,} {name}" for name in ("redriven", "purged") if counts[name]] or ["None changed"]
    left = [f"{counts[name]:,} {text}" for name, text in LEFT.items() if counts[name]]
    return "; ".join(done + left) + "."


def _filter(view: View) -> tuple[str, str | None]:
    """Return the channel and the line of the error; "" means that there is no error, None any."""
    channel, error = view.query("channel"), view.query("error") or None
    return channel, "" if error is None and view.query("without") == NO_ERROR else error


def _href(view: View, channel: str, error: str | None, **more: object) -> str:
    without = NO_ERROR if error == "" else ""
    return view.href("/failures", channel=channel, error=error, without=without, **more)
