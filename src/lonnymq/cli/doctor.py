"""doctor: check everything that goes wrong with a queue, and say what to do."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from lonnymq import Queue
from lonnymq.cli.connect import open_queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import console, print_json
from lonnymq.diagnostics import Examination
from lonnymq.doctor import failover_findings
from lonnymq.doctor.finding import Finding, Level, QueueFacts
from lonnymq.doctor.findings import USABLE, findings
from lonnymq.doctor.worker_findings import MAX_WORKERS
from lonnymq.formatting import quantity
from lonnymq.texts import escape_hidden

MARKS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", "blue"),
    Level.WARNING: ("!", "yellow"),
    Level.PROBLEM: ("✗", "bold red"),
}


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Skip the invariant check, which reads the whole queue.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    after_failover: Annotated[
        bool,
        typer.Option(
            "--after-failover",
            help="Also check what a failover, a restore or a logical copy leaves behind; for the owner.",
        ),
    ] = False,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Check everything that commonly goes wrong with a queue, and say what to do about it.

    Looks at connection, versions, schema, privileges, owner, settings, long transactions, dead rows, workers,
    messages leased for hours, stuck channels, history, and the queue's invariants. Changes nothing. The exit
    code is 1 if there is a problem.
    """
    with open_queue(dsn, schema) as queue:
        facts = queue.examine(after_failover=after_failover)
        found = list(findings(facts, _queue_facts(queue, facts, quick), datetime.now(UTC)))
        if after_failover:
            found += failover_findings.after_failover(facts)
    unhealthy = (Level.PROBLEM, Level.WARNING) if strict else (Level.PROBLEM,)
    is_healthy = not any(one.level in unhealthy for one in found)
    if as_json:
        print_json({"is_healthy": is_healthy, "findings": found})
    else:
        _show(found)
    if not is_healthy:
        raise typer.Exit(CommandExit.NO)


def _queue_facts(queue: Queue, facts: Examination, is_quick: bool) -> QueueFacts:
    """Query the queue as far as this role may, but never run functions that it does not trust."""
    may_be_called = facts.trust is not None and facts.trust.may_be_called
    if facts.schema.state not in USABLE or not may_be_called:
        return QueueFacts(None, None, None, None)
    allowed = facts.privileges.functions
    may_inspect = "queue_pulse" in allowed
    return QueueFacts(
        queue.pulse() if may_inspect else None,
        queue.history.partitions() if may_inspect else None,
        queue.workers(limit=MAX_WORKERS) if may_inspect else None,
        queue.check() if "queue_check" in allowed and not is_quick else None,
    )


def _show(found: list[Finding]) -> None:
    to = console()
    width = max(len(one.subject) for one in found)
    for one in found:
        mark, style = MARKS[one.level]
        to.print(
            Text.assemble(
                (mark, style), " ", (one.subject.ljust(width), "bold"), "  ", escape_hidden(one.detail)
            ),
            soft_wrap=True,
        )
        if one.advice:
            to.print(Text(" " * (width + 4) + "→ " + escape_hidden(one.advice), style="dim"), soft_wrap=True)
    counts = {level: sum(one.level is level for one in found) for level in Level}
    to.print()
    if not counts[Level.PROBLEM] and not counts[Level.WARNING]:
        to.print(Text("no problems found", style="green"))
    else:
        to.print(
            f"{quantity(counts[Level.PROBLEM], 'problem')}, {quantity(counts[Level.WARNING], 'warning')}"
        )
