"""Install, migrate, check and uninstall as steps: SQL to run, whose rows decide what comes next. No I/O here.

A driver runs each step inside one transaction and sends its rows back (see run.py, and client/aio.py).
"""

from typing import Any

from lonnymq.errors import (
    SchemaMissing,
    SchemaOccupied,
    SchemaTooNew,
    ServerTooOld,
    WrongIsolationLevel,
    invalid,
)
from lonnymq.schema import files, trust
from lonnymq.schema.found import MARKS, Found, SchemaState, SchemaStatus, look, names
from lonnymq.schema.step import Step, Steps, quoted, script, secluded


def install(schema: str) -> Steps[SchemaStatus]:
    """Make the queue, or bring it up to date; does nothing if this very version is there."""
    require_schema(schema)
    return (yield from secluded(schema, _install(schema)))


def migrate(schema: str) -> Steps[SchemaStatus]:
    """Bring an installed queue up to date: pending migrations, then all functions and views again."""
    require_schema(schema)
    return (yield from secluded(schema, _migrate(schema)))


def check(schema: str) -> Steps[SchemaStatus]:
    """Say what is installed; changes nothing."""
    require_schema(schema)
    return (yield from secluded(schema, look(schema))).status(schema)


def uninstall(schema: str) -> Steps[None]:
    """Drop the queue with all its messages; refuses if the schema holds anything else."""
    require_schema(schema)
    yield from secluded(schema, _uninstall(schema))


def sql_text(schema: str, version: int | None = None) -> str:
    """Return what install runs on a fresh database, as one script for psql or anybody else.

    With `version`, what migrate runs on a queue of that version.
    """
    require_schema(schema)
    if version is None:
        change = [Step(f"create schema {quoted(schema)};"), *creation(schema)]
    elif 1 <= version <= files.latest_version():
        change = [*trust.guard(schema), *update(schema, Found(True, version))]
    else:
        raise invalid("version", version, f"None, or one from 1 to {files.latest_version()}")
    steps = [Step("begin;"), *change, Step("commit;")]
    parts = [f"-- {step.origin}\n{step.text}" if step.origin else step.text for step in steps]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def creation(schema: str) -> Steps[None]:
    """Make a queue in a schema that is empty."""
    yield enter(schema)
    for file in (*files.contents(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _closing("'{}'")


def update(schema: str, found: Found) -> Steps[None]:
    """Bring a queue from a version to the latest."""
    if found.version > files.latest_version():
        # A newer version was here and says that we may stay: its functions are newer too.
        return
    yield enter(schema)
    yield script("schema/known.sql")
    for migration in files.migrations():
        if migration.version > found.version:
            yield Step(migration.text, origin=migration.path)
    for file in (*files.functions_and_views(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _closing("current_setting('lonnymq.known')::text[]")


def enter(schema: str) -> Step:
    """Until the end of the transaction, names are the queue's."""
    # Functions capture this search_path: pg_temp last, so that nobody's temporary table stands in for ours.
    # pg_catalog comes first, as wherever it is not named; what fits better is called all the same (trust.py).
    return Step(
        f"set local search_path to {quoted(schema)}, pg_temp;\nset local client_min_messages = warning;"
    )


def require_schema(schema: Any) -> None:
    """Refuse what cannot be a schema of our own, before anybody is asked."""
    if not isinstance(schema, str) or not 1 <= len(schema.encode("utf-8", "replace")) <= 63 or "\0" in schema:
        raise invalid("schema", schema, "a name of 1 to 63 bytes")
    if schema.startswith("pg_") or schema in ("information_schema", "public"):
        raise invalid("schema", schema, "a schema of the queue's own, not one of PostgreSQL's")


def _install(schema: str) -> Steps[SchemaStatus]:
    yield from _require_server()
    done = yield from _look_as_guest(schema)
    if done is not None:
        return done
    held = None
    while held is None:
        yield script("schema/create.sql")
        held = yield from _lock(schema)
    found = yield from look(schema)
    refuse_newer(schema, found.version, found.breaks_below)
    if not found.is_queue:
        trust.require_empty(schema, held)
        yield from creation(schema)
    elif found.state is SchemaState.OUTDATED:
        yield from update(schema, found)
    return (yield from look(schema)).status(schema)


def _migrate(schema: str) -> Steps[SchemaStatus]:
    yield from _require_server()
    held = yield from _lock(schema)
    found = yield from look(schema)
    if held is None or not found.is_queue:
        raise SchemaMissing(f"there is no queue in schema {schema!r}: run install(), or `lonnymq install`")
    refuse_newer(schema, found.version, found.breaks_below)
    yield from update(schema, found)
    return (yield from look(schema)).status(schema)


def _uninstall(schema: str) -> Steps[None]:
    yield from _require_server()
    if not (yield from names(schema)) >= MARKS:
        return
    yield script("schema/lock.sql")
    if not (yield from look(schema)).is_queue:
        return
    foreign = sorted((yield from names(schema)) - _our_names())
    foreign = [name for name in foreign if not _is_made_at_run_time(name)]
    if foreign:
        raise SchemaOccupied(
            f"schema {schema!r} also holds {', '.join(foreign[:5])}: move or drop what is not the queue's"
        )
    yield Step(f"drop schema {quoted(schema)} cascade")


def _require_server() -> Steps[None]:
    rows = yield Step(
        "select current_setting('server_version_num')::integer, current_setting('transaction_isolation')"
    )
    version, isolation = rows[0]
    if version < 140000:
        raise ServerTooOld(f"the queue needs PostgreSQL 14 or newer, this is {version // 10000}")
    if isolation != "read committed":
        raise WrongIsolationLevel(f"installing needs a READ COMMITTED transaction, this one is {isolation}")


def _look_as_guest(schema: str) -> Steps[SchemaStatus | None]:
    """Return what there is, if another role's queue is current: then install() is nobody's to do, and done.

    Not for a superuser, who must not be led to use what may be a stranger's.
    """
    held = yield from trust.look(schema)
    if held is None or held.role == held.owner or held.role_is_superuser:
        return None
    found = yield from look(schema)
    refuse_newer(schema, found.version, found.breaks_below)
    return found.status(schema) if found.state in (SchemaState.CURRENT, SchemaState.NEWER) else None


def _lock(schema: str) -> Steps[trust.Trust | None]:
    """Have nobody else change this schema until the transaction ends, and nobody's code in it but our own.

    None: there is none, or it was dropped by the one who had locked it.
    """
    held = yield from trust.look(schema)
    if held is None:
        return None
    trust.require_owner(schema, held)
    yield script("schema/lock.sql")
    held = yield from trust.look(schema)
    if held is not None:
        trust.require_owner(schema, held)
        trust.require_closed(schema, held)
    return held


def refuse_newer(schema: str, version: int, breaks_below: int) -> None:
    """Raise if the installed version says that this client is too old for it."""
    if breaks_below > files.latest_version():
        raise SchemaTooNew(
            f"the queue in schema {schema!r} is of version {version} and no longer works with clients"
            f" below {breaks_below}; this one knows {files.latest_version()}: upgrade lonnymq"
        )


def _closing(known: str) -> Steps[None]:
    """Make partitions; take from others what queue_grant did not give; and note what was applied."""
    yield Step("select history_prepare();")
    ours = ", ".join(f"'{name}'" for name in sorted(_our_names()))
    yield Step(f"select queue_seal(array[{ours}], {known});")
    mark = files.read("schema/mark.sql")
    yield Step(mark.text.replace("{fingerprint}", files.fingerprint()), origin=mark.path)


def _our_names() -> set[str]:
    kinds = ("table", "type", "sequence", "function", "view")
    return {name for kind in kinds for name in files.created(kind)}


def _is_made_at_run_time(name: str) -> bool:
    """Whether this is an index, an identity's sequence, or a partition of ours."""
    return any(name.startswith(f"{table}_") for table in files.created("table"))
