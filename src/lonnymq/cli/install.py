"""install, migrate: create the queue's schema, or upgrade it."""

from typing import Annotated

import typer

from lonnymq import MigrationPhase, PhaseKind, SchemaStatus, formatting
from lonnymq.cli.connect import open_queue
from lonnymq.cli.options import DEFAULT_SCHEMA, Dsn, Json, Schema
from lonnymq.cli.output import print_json, print_text
from lonnymq.schema import phases

# How fast a table in memory is read for an index of few of its rows; docs/howto/upgrade-the-schema.md has
# what was measured. Sorting the entries of many rows, or reading from a disk, takes longer.
INDEXED_ROWS_PER_S = 2_000_000


def install(dsn: Dsn = "", schema: Schema = DEFAULT_SCHEMA, as_json: Json = False) -> None:
    """Install the queue, or upgrade it to this release.

    Safe to run at every deployment, by any number of processes at once.
    """
    with open_queue(dsn, schema) as queue:
        before, after = queue.schema_status(), queue.install()
    _report(before, after, as_json)


def migrate(
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done and which locks it takes; change nothing.")
    ] = False,
    retry_for_s: Annotated[
        float, typer.Option("--retry-for-s", min=0, help="How long to try again if a lock is not granted.")
    ] = 60.0,
    dsn: Dsn = "",
    schema: Schema = DEFAULT_SCHEMA,
    as_json: Json = False,
) -> None:
    """Upgrade an installed queue to this release while it is in use; messages, leases and policies stay.

    A migration that is cut off leaves the old version working; run it again.
    """
    with open_queue(dsn, schema) as queue:
        before = queue.schema_status()
        if plan:
            _report_plan(before, queue.plan_migration(), as_json)
            return
        after = queue.migrate(retry_for_s=retry_for_s)
    _report(before, after, as_json, unchanged="replaced all functions and views")


def _report(
    before: SchemaStatus, after: SchemaStatus, as_json: bool, *, unchanged: str = "nothing to do"
) -> None:
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        print_text(f"queue {after.schema!r} is at version {after.version}, {after.state}: {unchanged}")
    elif before.version == 0:
        print_text(f"queue {after.schema!r} installed, version {after.version}")
    elif before.version == after.version:
        print_text(f"queue {after.schema!r} now has the functions of this release, version {after.version}")
    else:
        print_text(f"queue {after.schema!r} upgraded from version {before.version} to {after.version}")


def _report_plan(status: SchemaStatus, plan: tuple[MigrationPhase, ...], as_json: bool) -> None:
    if as_json:
        print_json({"status": status, "plan": plan})
        return
    print_text(
        f"queue {status.schema!r} is at version {status.version}, {status.state};"
        f" this client has {status.latest}"
    )
    for number, phase in enumerate(plan, 1):
        print_text(f"{number}. {_describe(phase)}")
    print_text(
        f"Each transaction waits at most {phases.LOCK_TIMEOUT_MS} ms for a lock, then lets"
        " others go on and tries again. Calls continue meanwhile."
    )


def _describe(phase: MigrationPhase) -> str:
    if phase.kind is PhaseKind.SWITCH:
        return "replace all functions and views: no lock on tables; readers of views wait until it commits"
    locks = ", ".join(
        f"{table.name} (about {formatting.quantity(table.rows, 'row')}, {formatting.byte_size(table.bytes)})"
        for table in phase.tables
    )
    if phase.kind is PhaseKind.INDEX:
        return (
            f"{phase.migration}: build an index on {locks}, outside a transaction, in about"
            f" {_index_time(phase)} if that is in memory and the index has few rows: nobody waits for it,"
            " and it waits for all older transactions"
        )
    if not locks:
        return f"{phase.migration}: no lock on tables that are in use"
    return f"{phase.migration}: ACCESS EXCLUSIVE lock on {locks}, for milliseconds: no row is rewritten"


def _index_time(phase: MigrationPhase) -> str:
    rows = sum(table.rows for table in phase.tables)
    return formatting.duration(max(0.1, rows / INDEXED_ROWS_PER_S))
