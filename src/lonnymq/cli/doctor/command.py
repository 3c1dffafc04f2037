"""doctor: look at everything, and say what to do."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from lonnymq import Queue, SchemaState
from lonnymq.cli.connect import opened
from lonnymq.cli.doctor import leases
from lonnymq.cli.doctor import queue as of_queue
from lonnymq.cli.doctor import server as of_server
from lonnymq.cli.doctor.finding import Finding, Level, Vitals
from lonnymq.cli.exits import Exit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.show import console, emit
from lonnymq.cli.words import counted
from lonnymq.schema.examine import Examination
from lonnymq.texts import visible

MARKS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", "blue"),
    Level.WARNING: ("!", "yellow"),
    Level.PROBLEM: ("✗", "bold red"),
}
WORKABLE = (SchemaState.CURRENT, SchemaState.NEWER, SchemaState.OUTDATED)


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Without the check, which reads the whole queue.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 for warnings too.")] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Look at everything that goes wrong with a queue, and say what to do.

    Connection, versions, schema, privileges, owner, settings, long transactions, dead rows, workers, messages
    that are worked for hours, stuck channels, history, and the queue's own check. Ends with 1 if there is a
    problem. Changes nothing.
    """
    with opened(dsn, schema) as queue:
        facts = queue.examine()
        found = list(findings(facts, _vitals(queue, facts, quick), datetime.now(UTC)))
    bad = (Level.PROBLEM, Level.WARNING) if strict else (Level.PROBLEM,)
    is_healthy = not any(one.level in bad for one in found)
    if as_json:
        emit({"is_healthy": is_healthy, "findings": found})
    else:
        _show(found)
    if not is_healthy:
        raise typer.Exit(Exit.NO)


def findings(facts: Examination, vitals: Vitals, now: datetime) -> Iterator[Finding]:
    """Yield what there is to say, in the order in which to mend it."""
    yield from of_server.place(facts.server, now)
    yield from of_server.schema(facts)
    yield from of_server.privileges(facts)
    yield from of_server.owner(facts)
    yield from of_server.settings(facts.server)
    yield from of_server.connections(facts.server)
    yield from of_queue.holders(facts)
    yield from of_queue.tables(facts)
    if vitals.status is not None:
        yield from of_queue.workers(vitals.status, facts)
        yield from of_queue.history(vitals.status, vitals.partitions)
    yield from leases.long_work(facts)
    yield from of_queue.channels(facts)
    if vitals.problems is not None:
        yield from of_queue.invariants(vitals.problems)
    yield from of_server.unchecked(facts)


def _vitals(queue: Queue, facts: Examination, is_quick: bool) -> Vitals:
    """Ask the queue what this role may ask; not where functions of others may answer."""
    may_be_called = facts.trust is not None and facts.trust.may_be_called
    if facts.schema.state not in WORKABLE or not may_be_called:
        return Vitals(None, None, None)
    may = facts.privileges.functions
    return Vitals(
        queue.status() if "queue_status" in may else None,
        queue.history.partitions() if "queue_status" in may else None,
        queue.check() if "queue_check" in may and not is_quick else None,
    )


def _show(found: list[Finding]) -> None:
    to = console()
    width = max(len(one.subject) for one in found)
    for one in found:
        mark, style = MARKS[one.level]
        to.print(
            Text.assemble((mark, style), " ", (one.subject.ljust(width), "bold"), "  ", visible(one.detail)),
            soft_wrap=True,
        )
        if one.advice:
            to.print(Text(" " * (width + 4) + "→ " + visible(one.advice), style="dim"), soft_wrap=True)
    counts = {level: sum(one.level is level for one in found) for level in Level}
    to.print()
    if not counts[Level.PROBLEM] and not counts[Level.WARNING]:
        to.print(Text("all is well", style="green"))
    else:
        to.print(f"{counted(counts[Level.PROBLEM], 'problem')}, {counted(counts[Level.WARNING], 'warning')}")
