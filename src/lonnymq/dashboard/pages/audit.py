"""Audit: what operators did, newest first."""

from starlette.responses import Response

from lonnymq.dashboard.view import View
from lonnymq.formatting import json_value

LIMIT = 50


async def show(view: View) -> Response:
    actor, subject = view.query("actor"), view.query("subject")
    page = await view.reader.audit.page(
        actor=actor or None, subject=subject or None, before=view.cursor(), limit=LIMIT
    )
    return view.render(
        "audit.html",
        actor=actor,
        subject=subject,
        found=page.items,
        json_value=json_value,
        first=view.href("/audit", actor=actor, subject=subject) if view.query("before") else None,
        next=view.href("/audit", actor=actor, subject=subject, before=page.next) if page.next else None,
    )
