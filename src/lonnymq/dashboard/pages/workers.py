"""Workers: the processes that work on the queue, what they hold; drain one of them, or all."""

from collections.abc import Sequence

from starlette.responses import Response

from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.view import View
from lonnymq.model import DrainOutcome, WorkerState

LIMIT = 100
# What is typed to drain all workers.
ALL = "drain all"
GONE = "This process is no longer there. Nothing was changed."


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
        may_drain=any(one.state is WorkerState.WORKING for one in found),
        all_typed=ALL,
        next=view.href("/workers", after=found[-1].worker) if has_more else None,
    )


async def act(view: View, form: Form) -> Response:
    worker: str | None = form.exact("worker")
    match form.text("action"):
        case "drain" if worker:
            pass
        case "drain_all":
            form.require_typed(ALL)
            worker = None
        case _:
            raise Refused(400, "There is no such action", "Nothing was changed.")
    async with view.act("worker_drain", worker) as action:
        asked = await view.operator.drain_workers(worker, connection=action.connection)
        action.outcomes += [one.outcome for one in asked]
    kind, answer = _answer(action.outcomes, is_all=worker is None)
    return view.back_to(view.href("/workers", after=view.query("after")), answer, kind)


def _answer(outcomes: Sequence[str], *, is_all: bool) -> tuple[str, str]:
    draining, busy = outcomes.count(DrainOutcome.DRAINING), outcomes.count(DrainOutcome.BUSY)
    if busy:
        return (
            "failed",
            f"Draining: {draining:,}. Locked by another transaction: {busy:,}; try again.",
        )
    if not draining:
        return "failed", "No worker reports itself any more. Nothing was changed." if is_all else GONE
    if is_all:
        return "done", f"All workers take no more messages, finish those they have, and end: {draining:,}."
    return "done", "The process takes no more messages, finishes those it has, and ends."
