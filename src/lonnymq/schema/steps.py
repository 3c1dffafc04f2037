"""Install, migrate, check and uninstall as steps: SQL to run, whose rows decide what comes next. No I/O here.

A driver runs each step inside one transaction and sends its rows back (see run.py, and client/aio.py).
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from psycopg import sql

from lonnymq.errors import (
    SchemaMissing,
    SchemaOccupied,
    SchemaTooNew,
    ServerTooOld,
    WrongIsolationLevel,
    invalid,
)
from lonnymq.schema import files

Rows = list[tuple[Any, ...]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """Text to execute: a whole script, or one statement with parameters."""

    text: str
    parameters: tuple[Any, ...] | None = None
    origin: str | None = None


Steps = Generator[Step, Rows, Result]


class SchemaState(StrEnum):
    MISSING = "missing"
    OUTDATED = "outdated"
    CURRENT = "current"
    NEWER = "newer"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True)
class SchemaStatus:
    """What is installed: `version` is 0 where nothing is; `latest` is the version this client brings."""

    schema: str
    state: SchemaState
    version: int
    latest: int


@dataclass(frozen=True)
class Found:
    """What the catalog says of a schema."""

    exists: bool
    version: int
    breaks_below: int
    fingerprint: str | None
    occupied: tuple[str, ...]

    @property
    def is_queue(self) -> bool:
        return self.version > 0


def install(schema: str) -> Steps[SchemaStatus]:
    """Make the queue, or bring it up to date; does nothing if this very version is there."""
    require_schema(schema)
    before = yield from _lock(schema)
    found = yield from _look(schema)
    _refuse_unfit(schema, found)
    if not found.is_queue:
        yield from creation(schema, found.exists)
    elif found.version < files.latest_version() or found.fingerprint != _mark():
        yield from _update(schema, found)
    yield from _unlock(before)
    return (yield from check(schema))


def migrate(schema: str) -> Steps[SchemaStatus]:
    """Bring an installed queue up to date: pending migrations, then all functions and views again."""
    require_schema(schema)
    before = yield from _lock(schema)
    found = yield from _look(schema)
    _refuse_unfit(schema, found)
    if not found.is_queue:
        raise SchemaMissing(f"there is no queue in schema {schema!r}: run install(), or `lonnymq install`")
    yield from _update(schema, found)
    yield from _unlock(before)
    return (yield from check(schema))


def check(schema: str) -> Steps[SchemaStatus]:
    """Say what is installed; changes nothing."""
    require_schema(schema)
    found = yield from _look(schema)
    latest = files.latest_version()
    if not found.is_queue:
        state = SchemaState.MISSING
    elif found.breaks_below > latest:
        state = SchemaState.INCOMPATIBLE
    elif found.version > latest:
        state = SchemaState.NEWER
    elif found.version < latest or found.fingerprint != _mark():
        state = SchemaState.OUTDATED
    else:
        state = SchemaState.CURRENT
    return SchemaStatus(schema, state, found.version, latest)


def uninstall(schema: str) -> Steps[None]:
    """Drop the queue with all its messages; refuses if the schema holds anything else."""
    require_schema(schema)
    before = yield from _lock(schema)
    found = yield from _look(schema)
    if found.is_queue:
        foreign = sorted((yield from _names(schema)) - _our_names())
        foreign = [name for name in foreign if not _is_made_at_run_time(name)]
        if foreign:
            raise SchemaOccupied(
                f"schema {schema!r} also holds {', '.join(foreign[:5])}: move or drop what is not the queue's"
            )
        yield Step(f"drop schema {_quoted(schema)} cascade")
    yield from _unlock(before)


def sql_text(schema: str, version: int | None = None) -> str:
    """Return what install runs on a fresh database, as one script for psql or anybody else.

    With `version`, what migrate runs on a queue of that version.
    """
    require_schema(schema)
    if version is None:
        change = creation(schema, exists=False)
    elif 1 <= version <= files.latest_version():
        change = _update(schema, Found(True, version, 0, None, ()))
    else:
        raise invalid("version", version, f"None, or one from 1 to {files.latest_version()}")
    steps = [Step("begin;"), *change, Step("commit;")]
    parts = [f"-- {step.origin}\n{step.text}" if step.origin else step.text for step in steps]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def creation(schema: str, exists: bool) -> Steps[None]:
    """Make a queue where there is none."""
    if not exists:
        yield Step(f"create schema {_quoted(schema)};")
    yield enter(schema)
    for file in (*files.contents(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield Step("select history_prepare();")
    yield from _closing(schema)


def require_schema(schema: Any) -> None:
    """Refuse what cannot be a schema of our own, before anybody is asked."""
    if not isinstance(schema, str) or not 1 <= len(schema.encode("utf-8", "replace")) <= 63 or "\0" in schema:
        raise invalid("schema", schema, "a name of 1 to 63 bytes")
    if schema.startswith("pg_") or schema in ("information_schema", "public"):
        raise invalid("schema", schema, "a schema of the queue's own, not one of PostgreSQL's")


def _update(schema: str, found: Found) -> Steps[None]:
    if found.version > files.latest_version():
        # A newer version was here and says that we may stay: its functions are newer too.
        return
    yield enter(schema)
    for migration in files.migrations():
        if migration.version > found.version:
            yield Step(migration.text, origin=migration.path)
    for file in (*files.functions_and_views(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield Step("select history_prepare();")
    yield from _closing(schema)


def enter(schema: str) -> Step:
    """Until the end of the transaction, names are the queue's."""
    # Functions capture this search_path: pg_temp last, so that nobody's temporary table stands in for ours.
    return Step(
        f"set local search_path to {_quoted(schema)}, pg_temp;\nset local client_min_messages = warning;"
    )


def _closing(schema: str) -> Steps[None]:
    """PUBLIC may do nothing; and a note of what was applied."""
    yield Step(f"revoke all on schema {_quoted(schema)} from public;")
    for kind, names in (
        ("function", files.created("function")),
        ("table", (*files.created("table"), *files.created("view"))),
        ("sequence", files.created("sequence")),
    ):
        yield Step(f"revoke all on {kind} {', '.join(names)} from public;")
    yield Step(f"comment on table migration is '{_mark()}';")


def _mark() -> str:
    return f"lonnymq {files.fingerprint()}"


def _lock(schema: str) -> Steps[tuple[str, str]]:
    """Wait until nobody else installs this schema; return the settings to put back."""
    rows = yield Step(
        "select pg_advisory_xact_lock(hashtextextended('lonnymq install ' || %s::text, 0)),"
        " current_setting('server_version_num')::integer, current_setting('transaction_isolation'),"
        " current_setting('search_path'), current_setting('client_min_messages')",
        (schema,),
    )
    _, version, isolation, search_path, client_min_messages = rows[0]
    if version < 140000:
        raise ServerTooOld(f"the queue needs PostgreSQL 14 or newer, this is {version // 10000}")
    if isolation != "read committed":
        raise WrongIsolationLevel(f"installing needs a READ COMMITTED transaction, this one is {isolation}")
    return search_path, client_min_messages


def _unlock(before: tuple[str, str]) -> Steps[None]:
    """Put the settings back; the lock itself ends with the transaction."""
    yield Step(
        "select set_config('search_path', %s, true), set_config('client_min_messages', %s, true)", before
    )


def _look(schema: str) -> Steps[Found]:
    """Find out what is there, without touching anything that might not be ours."""
    rows = yield Step("select 1 from pg_namespace where nspname = %s", (schema,))
    if not rows:
        return Found(False, 0, 0, None, ())
    names = yield from _names(schema)
    rows = yield Step(
        "select obj_description(c.oid, 'pg_class') from pg_class c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " join pg_attribute a on a.attrelid = c.oid and a.attname = 'breaks_below'"
        " where n.nspname = %s and c.relname = 'migration' and c.relkind = 'r'",
        (schema,),
    )
    if not rows or not {"setting", "turn", "message"} <= names:
        return Found(True, 0, 0, None, tuple(sorted(names & _our_names())))
    mark = rows[0][0]
    rows = yield Step(
        f"select coalesce(max(version), 0), coalesce(max(breaks_below), 0) from {_quoted(schema)}.migration"
    )
    return Found(True, rows[0][0], rows[0][1], mark, ())


def _names(schema: str) -> Steps[set[str]]:
    """Return the names of all relations, types and functions in a schema."""
    rows = yield Step(
        "select x.name from pg_namespace n cross join lateral ("
        " select c.relname::text from pg_class c where c.relnamespace = n.oid"
        " union all select p.proname::text from pg_proc p where p.pronamespace = n.oid"
        " union all select t.typname::text from pg_type t where t.typnamespace = n.oid and t.typelem = 0"
        ") x(name) where n.nspname = %s",
        (schema,),
    )
    return {name for (name,) in rows}


def _our_names() -> set[str]:
    kinds = ("table", "sequence", "function", "view")
    return {name for kind in kinds for name in files.created(kind)}


def _is_made_at_run_time(name: str) -> bool:
    """Whether this is an index, an identity's sequence, or a partition of ours."""
    return any(name.startswith(f"{table}_") for table in files.created("table"))


def _refuse_unfit(schema: str, found: Found) -> None:
    if found.occupied:
        raise SchemaOccupied(
            f"schema {schema!r} is no queue, but has {', '.join(found.occupied[:5])} already: choose another"
        )
    refuse_newer(schema, found.version, found.breaks_below)


def refuse_newer(schema: str, version: int, breaks_below: int) -> None:
    """Raise if the installed version says that this client is too old for it."""
    if breaks_below > files.latest_version():
        raise SchemaTooNew(
            f"the queue in schema {schema!r} is of version {version} and no longer works with clients"
            f" below {breaks_below}; this one knows {files.latest_version()}: upgrade lonnymq"
        )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)
