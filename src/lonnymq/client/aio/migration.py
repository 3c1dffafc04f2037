"""Migrates in phases: short transactions that give up a lock soon, and try again."""

import asyncio
from typing import TYPE_CHECKING

import psycopg

from lonnymq.connections.backoff import Backoff
from lonnymq.errors import Busy
from lonnymq.schema import MigrationPhase, PhaseKind, SchemaStatus, phases, steps

if TYPE_CHECKING:
    from lonnymq.client.aio.caller import AsyncCaller

# Between attempts, calls that waited behind a phase go on.
FIRST_PAUSE_S, MAX_PAUSE_S = 0.2, 2.0
# A lock was not granted in time, or a statement held one for too long.
TOO_LONG = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    # Somebody has cut off the building of an index.
    psycopg.errors.ObjectNotInPrerequisiteState,
)


async def plan_migration(caller: "AsyncCaller") -> tuple[MigrationPhase, ...]:
    return await caller.run(phases.plan(caller.schema))


async def migrate(caller: "AsyncCaller", retry_for_s: float) -> SchemaStatus:
    """Do all phases. If this is cut off, the installed version still works, and the next call continues."""
    for phase in await plan_migration(caller):
        await _run(caller, phase, retry_for_s)
    return await caller.run(steps.status(caller.schema))


async def _run(caller: "AsyncCaller", phase: MigrationPhase, retry_for_s: float) -> None:
    for pause_s in Backoff(first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S).pauses(for_s=retry_for_s):
        try:
            if phase.kind is PhaseKind.INDEX:
                await _build_index(caller, phase, retry_for_s)
            await caller.run(phases.run(caller.schema, phase))
        except TOO_LONG as error:
            failed = error
        else:
            return
        await asyncio.sleep(pause_s)
    found = await caller.run(phases.blocker(caller.schema, phase))
    names = ", ".join(table.name for table in phase.tables) or "the views"
    if phase.kind is PhaseKind.INDEX:
        what = (
            f"{phase.migration} did not build its index on {names}, because it waits for all older"
            f" transactions, in attempts over {retry_for_s:g} s; the oldest transaction in this database"
        )
    else:
        what = (
            f"{phase.migration or 'replacing functions and views'} did not get a lock on {names} within"
            f" {phases.LOCK_TIMEOUT_MS} ms, in attempts over {retry_for_s:g} s;"
            " the oldest transaction that uses the queue"
        )
    raise Busy(
        f"{what}: {found or 'none now'}. Phases that are complete stay so, and the installed version works:"
        " end that transaction, then run migrate() again"
    ) from failed


async def _build_index(caller: "AsyncCaller", phase: MigrationPhase, retry_for_s: float) -> None:
    """Build an index on a connection of its own, outside a transaction, unless that has been done."""
    statements = await caller.run(phases.prepare_index(caller.schema, phase))
    if not statements:
        return
    # Nobody waits while it waits for older transactions.
    lock_timeout_ms = max(round(retry_for_s * 1000), phases.LOCK_TIMEOUT_MS)
    async with caller.source.dedicated_connection() as connection:
        for text in (f"set lock_timeout = {lock_timeout_ms}", *statements):
            await connection.execute(text.encode(connection.info.encoding), prepare=False)
