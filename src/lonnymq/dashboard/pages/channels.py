"""Channels: those that wait longest, those with most messages, or all by the prefix of their names."""

from starlette.responses import Response

from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View

LIMIT = 50
ORDERS = {"waiting": "Waiting longest", "messages": "Most messages", "name": "By name"}


async def show(view: View) -> Response:
    prefix, after = view.query("prefix"), view.query("after")
    order = view.query("order") or ("name" if prefix else "waiting")
    if order not in ORDERS:
        raise Refused(400, "There is no such order", f"Use one of {', '.join(ORDERS)}.")
    sampler = view.dashboard.sampler
    pulse = (await sampler.look()).pulse
    has_more = False
    if order == "name":
        found = await view.reader.channels(prefix=prefix, after=after, limit=LIMIT + 1)
        has_more = len(found) > LIMIT
        found = found[:LIMIT]
    elif order == "messages":
        found = await view.reader.busiest(limit=LIMIT)
    else:
        found = await view.reader.overdue(limit=LIMIT)
    # For their rates, and their shares.
    for one in found:
        sampler.history.add_channel(one, pulse)
    return view.render(
        "channels.html",
        order=order,
        orders=ORDERS,
        prefix=prefix,
        after=after,
        limit=LIMIT,
        found=found,
        pulse=pulse,
        history=sampler.history,
        next=view.href("/channels", order=order, prefix=prefix, after=found[-1].channel)
        if has_more
        else None,
    )
