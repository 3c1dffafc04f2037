"""A migration in phases, each a transaction with short locks; the old version works after each of them.

First the tables are expanded, by one transaction per migration: the old functions work with the new tables.
An index on a table in use is built outside a transaction, between two short ones. Then all functions and
views are replaced together. Last come the migrations that remove what no function of this version uses.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lonnymq.errors import SchemaMissing
from lonnymq.schema import changes, files, trust
from lonnymq.schema.inspection import InstalledSchema, inspect
from lonnymq.schema.requirements import lock, refuse_newer, require_schema, require_server
from lonnymq.schema.step import Step, Steps, query, quote_identifier, with_safe_search_path

if TYPE_CHECKING:
    from lonnymq.schema.files import Index, Migration

# How long a phase waits for a lock. Calls that need the same table wait behind it.
LOCK_TIMEOUT_MS = 200
# How long a statement that changes a table may take, including that wait.
STATEMENT_TIMEOUT_MS = 2_000
# For building an index, which may take long, and waits for all older transactions without blocking anyone.
INDEX_SETTINGS = (
    "set search_path to pg_catalog, pg_temp",
    "set client_min_messages = warning",
    "set statement_timeout = 0",
)


class PhaseKind(StrEnum):
    EXPAND = "expand"
    INDEX = "index"
    SWITCH = "switch"
    CONTRACT = "contract"


@dataclass(frozen=True)
class LockedTable:
    """A table that a phase locks or, if it builds an index, reads; `rows` is the planner's estimate."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class MigrationPhase:
    """One transaction of a migration, or the building of an index between two.

    `migration` is its file; None if functions and views are replaced.
    """

    kind: PhaseKind
    migration: str | None
    tables: tuple[LockedTable, ...] = ()


@dataclass(frozen=True)
class MigrationBlocker:
    """The oldest transaction that has locked an object of the queue."""

    pid: int
    role: str | None
    application: str
    age_s: float

    def __str__(self) -> str:
        return (
            f"pid {self.pid} ({self.role}, {self.application or 'no application name'}),"
            f" in a transaction since {self.age_s:.0f} s"
        )


def plan(schema: str) -> Steps[tuple[MigrationPhase, ...]]:
    """Return the phases that are left to do. Changes nothing."""
    require_schema(schema)
    return (yield from with_safe_search_path(schema, _plan(schema)))


def run(schema: str, phase: MigrationPhase) -> Steps[None]:
    """Do one phase, unless it has been done meanwhile."""
    require_schema(schema)
    yield from with_safe_search_path(schema, _run(schema, phase))


def prepare_index(schema: str, phase: MigrationPhase) -> Steps[tuple[str, ...]]:
    """Return the statements that build the index of a phase on a connection outside a transaction.

    There are none if the index has been built. The remains of an earlier attempt are dropped.
    """
    require_schema(schema)
    return (yield from with_safe_search_path(schema, _prepare_index(schema, phase)))


def blocker(schema: str, phase: MigrationPhase) -> Steps[MigrationBlocker | None]:
    """Return who may be in the way of a phase that did not get its locks."""
    return (yield from with_safe_search_path(schema, _blocker(phase)))


def script(schema: str, version: int) -> Iterator[Step]:
    """Yield all phases for a queue of that version, for another tool to run. It may be run again."""
    for phase in _phases(migration for migration in files.migrations() if migration.version > version):
        if phase.kind is PhaseKind.INDEX:
            # To be sent by itself, as psql does.
            yield from _in_transaction(schema, _prepare(schema, phase))
            yield changes.build_index(schema, _index(phase))
        yield from _in_transaction(schema, _change(schema, phase))


def _plan(schema: str) -> Steps[tuple[MigrationPhase, ...]]:
    installed = yield from _inspect(schema, (yield from trust.assess(schema)))
    if installed.version > files.latest_version():
        return ()
    recorded = yield Step(f"select version from only {quote_identifier(schema)}.migration")
    sizes = {
        name: LockedTable(name, rows, size) for name, rows, size in (yield query("schema/table_rows.sql"))
    }
    pending = [one for one in files.migrations() if (one.version,) not in recorded]
    return tuple(_phases(pending, sizes))


def _run(schema: str, phase: MigrationPhase) -> Steps[None]:
    installed = yield from _inspect(schema, (yield from lock(schema)))
    if installed.version <= files.latest_version():
        yield from _change(schema, phase)


def _prepare_index(schema: str, phase: MigrationPhase) -> Steps[tuple[str, ...]]:
    installed = yield from _inspect(schema, (yield from lock(schema)))
    recorded = yield Step(f"select version from only {quote_identifier(schema)}.migration")
    if installed.version > files.latest_version() or (_migration(phase).version,) in recorded:
        return ()
    yield from _prepare(schema, phase)
    return (*INDEX_SETTINGS, changes.build_index(schema, _index(phase)).text)


def _in_transaction(schema: str, steps: Iterable[Step]) -> Iterator[Step]:
    yield Step("begin;")
    yield from trust.guard(schema)
    yield from steps
    yield Step("commit;")


def _prepare(schema: str, phase: MigrationPhase) -> Steps[None]:
    yield from _limits(schema)
    yield changes.prepare_index(_migration(phase))


def _inspect(schema: str, assessed: trust.Trust | None) -> Steps[InstalledSchema]:
    yield from require_server()
    installed = yield from inspect(schema)
    if assessed is None or not installed.is_queue:
        raise SchemaMissing(f"there is no queue in schema {schema!r}: run install() or `lonnymq install`")
    trust.require_owner(schema, assessed)
    trust.require_closed(schema, assessed)
    refuse_newer(schema, installed.version, installed.breaks_below)
    return installed


def _phases(
    pending: "Iterator[Migration] | list[Migration]", sizes: dict[str, LockedTable] | None = None
) -> Iterator[MigrationPhase]:
    expand: list[MigrationPhase] = []
    contract: list[MigrationPhase] = []
    for one in pending:
        tables = tuple((sizes or {}).get(name, LockedTable(name, 0, 0)) for name in one.changed_tables)
        kind = PhaseKind.INDEX if one.index else PhaseKind.EXPAND
        if one.is_contract:
            kind = PhaseKind.CONTRACT
        (contract if one.is_contract else expand).append(MigrationPhase(kind, one.path, tables))
    yield from (*expand, MigrationPhase(PhaseKind.SWITCH, None), *contract)


def _change(schema: str, phase: MigrationPhase) -> Steps[None]:
    if phase.kind is PhaseKind.SWITCH:
        yield changes.set_search_path(schema)
        yield Step(f"set local lock_timeout = {LOCK_TIMEOUT_MS};")
        yield from changes.switch()
        return
    yield from _limits(schema)
    if phase.kind is PhaseKind.INDEX:
        yield changes.record_index(_migration(phase))
    else:
        yield changes.apply_migration(_migration(phase))


def _limits(schema: str) -> Steps[None]:
    yield changes.set_search_path(schema)
    yield Step(f"set local lock_timeout = {LOCK_TIMEOUT_MS};")
    yield Step(f"set local statement_timeout = {STATEMENT_TIMEOUT_MS};")


def _migration(phase: MigrationPhase) -> "Migration":
    [migration] = [one for one in files.migrations() if one.path == phase.migration]
    return migration


def _index(phase: MigrationPhase) -> "Index":
    index = _migration(phase).index
    assert index is not None
    return index


def _blocker(phase: MigrationPhase) -> Steps[MigrationBlocker | None]:
    is_index = phase.kind is PhaseKind.INDEX
    rows = yield query("schema/index_blocker.sql" if is_index else "schema/migration_blocker.sql")
    return MigrationBlocker(*rows[0]) if rows else None
