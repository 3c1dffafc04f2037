"""Messages: the live ones, newest first, of one channel or all, by their status."""

from starlette.responses import RedirectResponse, Response

from lonnymq import formatting
from lonnymq.dashboard.pages.message import parse_id, timing
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View
from lonnymq.model import MessageStatus

LIMIT = 50
STATUSES = {"": "All", "waiting": "Waiting", "scheduled": "Scheduled", "leased": "Running"}


async def show(view: View) -> Response:
    if wanted := view.query("id", high=20).strip():
        return RedirectResponse(view.href(f"/messages/{parse_id(wanted)}"), 303)
    channel, prefix, status = view.query("channel"), view.query("prefix"), view.query("status")
    if status not in STATUSES:
        raise Refused(400, "There is no such status", f"Use one of {', '.join(filter(None, STATUSES))}.")
    if channel and prefix:
        raise Refused(400, "There are two filters for the channel", "Give its name, or the beginning of it.")
    page = await view.reader.messages(
        channel or None,
        prefix=prefix or None,
        status=MessageStatus(status) if status else None,
        before=view.cursor(),
        limit=LIMIT,
        preview_bytes=0,
    )
    filters = {"channel": channel, "prefix": prefix, "status": status}
    return view.render(
        "messages.html",
        channel=channel,
        prefix=prefix,
        status=status,
        statuses=STATUSES,
        found=page.items,
        timing=timing,
        last_line=formatting.last_line,
        limit=LIMIT,
        first=view.href("/messages", **filters) if view.query("before") else None,
        next=view.href("/messages", **filters, before=page.next) if page.next else None,
    )
