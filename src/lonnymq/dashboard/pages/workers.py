"""Workers: the processes that work on the queue, what they hold; drain."""

from starlette.responses import Response

from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View

LIMIT = 100


async def show(view: View) -> Response:
    after = view.query("after")
    found = await view.reader.workers(after=after, limit=LIMIT + 1)
    has_more = len(found) > LIMIT
    found = found[:LIMIT]
    return view.render(
        "workers.html",
        found=found,
        after=after,
        limit=LIMIT,
        first=view.href("/workers") if after else None,
        next=view.href("/workers", after=found[-1].worker) if has_more else None,
    )


async def act(view: View, form: Form) -> Response:
    worker = form.exact("worker")
    if form.text("action") != "drain" or not worker:
        raise Refused(400, "There is no such action", "Nothing was changed.")
    async with view.act("worker_drain", worker) as action:
        asked = await view.operator.drain_workers(worker, connection=action.connection)
        action.outcomes += [one.outcome for one in asked]
    here = view.href("/workers", after=view.query("after"))
    if "draining" in action.outcomes:
        return view.back_to(here, "The process takes no more messages, finishes those it has, and ends.")
    return view.back_to(here, "This process is no longer there. Nothing was changed.", "failed")
