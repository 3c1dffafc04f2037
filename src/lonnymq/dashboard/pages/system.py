"""System: what the doctor finds, sizes and dead rows, who holds vacuum and history back, exact counts."""

from dataclasses import replace
from datetime import UTC, datetime

from starlette.responses import Response

from lonnymq.dashboard.view import View
from lonnymq.diagnostics import Examination
from lonnymq.doctor.finding import Level, QueueFacts
from lonnymq.doctor.findings import USABLE, findings
from lonnymq.doctor.worker_findings import MAX_WORKERS

MAX_TABLES = 40
# How many rows of history a reader is behind is counted up to here.
COUNT_TO = 10_000
# Worst first.
LEVELS = (Level.PROBLEM, Level.WARNING, Level.NOTE, Level.OK)


async def show(view: View) -> Response:
    queue = view.reader
    facts = await queue.examine()
    is_usable = facts.schema.state in USABLE and facts.trust is not None and facts.trust.may_be_called
    pulse = await queue.pulse() if is_usable else None
    partitions = await queue.history.partitions() if is_usable else None
    workers = await queue.workers(limit=MAX_WORKERS) if is_usable else None
    if not view.visitor.may_act:
        facts = without_statements(facts)
    found = list(findings(facts, QueueFacts(pulse, partitions, workers, None), datetime.now(UTC)))
    return view.render(
        "system.html",
        findings=sorted(found, key=lambda one: LEVELS.index(one.level)),
        facts=facts,
        pulse=pulse,
        tables=facts.tables[:MAX_TABLES],
        counts=await view.dashboard.counter.look() if is_usable else None,
        readers=await queue.history.readers(count_to=COUNT_TO) if is_usable else [],
        lags=await queue.history.lag() if is_usable else {},
        blocker=await queue.history.blocker() if is_usable else None,
        count_to=COUNT_TO,
    )


def without_statements(facts: Examination) -> Examination:
    """Return the facts without the statements of other sessions, which may contain what messages contain."""
    hidden = (replace(one, detail="a statement that only operators see") for one in facts.vacuum_blockers)
    return replace(facts, vacuum_blockers=tuple(hidden))
