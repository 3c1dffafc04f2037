"""Installs, migrates, inspects and uninstalls, as steps: SQL to execute, whose rows decide what follows.

There is no I/O here: the client executes all steps in one transaction and sends back the rows of each.
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
from lonnymq.schema.inspection import (
    CORE_TABLES,
    InstalledSchema,
    SchemaState,
    SchemaStatus,
    inspect,
    object_names,
)
from lonnymq.schema.step import Step, Steps, quote_identifier, script, with_safe_search_path


def install(schema: str) -> Steps[SchemaStatus]:
    """Install the queue, or bring it up to date. Does nothing if this version is installed."""
    require_schema(schema)
    return (yield from with_safe_search_path(schema, _install(schema)))


def migrate(schema: str) -> Steps[SchemaStatus]:
    """Bring an installed queue up to date: apply pending migrations, then all functions and views again."""
    require_schema(schema)
    return (yield from with_safe_search_path(schema, _migrate(schema)))


def status(schema: str) -> Steps[SchemaStatus]:
    """Return what is installed. Changes nothing."""
    require_schema(schema)
    return (yield from with_safe_search_path(schema, inspect(schema))).status(schema)


def uninstall(schema: str) -> Steps[None]:
    """Drop the queue with all its messages. Refuses if the schema contains anything else."""
    require_schema(schema)
    yield from with_safe_search_path(schema, _uninstall(schema))


def sql_text(schema: str, version: int | None = None, *, within_transaction: bool = False) -> str:
    """Return what install() executes on a new database, as one script, for example for psql.

    With `version`, return what migrate() executes on a queue of that version. `within_transaction`: the
    script is part of a transaction that began before it and continues after it.
    """
    require_schema(schema)
    if version is None:
        change = [Step(f"create schema {quote_identifier(schema)};"), *creation(schema)]
    elif 1 <= version <= files.latest_version():
        change = [*trust.guard(schema), *update(schema, InstalledSchema(True, version))]
    else:
        raise invalid("version", version, f"None, or a version from 1 to {files.latest_version()}")
    if within_transaction:
        steps = [script("schema/save_settings.sql"), *change, script("schema/restore_settings.sql")]
    else:
        steps = [Step("begin;"), *change, Step("commit;")]
    parts = [f"-- {step.origin}\n{step.text}" if step.origin else step.text for step in steps]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def creation(schema: str) -> Steps[None]:
    """Create a queue in an empty schema."""
    yield set_search_path(schema)
    for file in (*files.contents(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _finish("'{}'")


def update(schema: str, installed: InstalledSchema) -> Steps[None]:
    """Bring a queue from the installed version to the latest."""
    if installed.version > files.latest_version():
        # A newer version was installed and allows this client: its functions are newer than ours.
        return
    yield set_search_path(schema)
    yield script("schema/existing_objects.sql")
    for migration in files.migrations():
        if migration.version > installed.version:
            yield Step(migration.text, origin=migration.path)
    for file in (*files.functions_and_views(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _finish("current_setting('lonnymq.existing_objects')::text[]")


def set_search_path(schema: str) -> Step:
    """Return the step that makes unqualified names the queue's until the transaction ends."""
    # Functions keep this search_path. pg_temp is last, so that no temporary table can hide a table of ours.
    # pg_catalog is searched first although it is not listed, but a better matching overload in the schema
    # would still be called; trust.py prevents that.
    return Step(
        f"set local search_path to {quote_identifier(schema)}, pg_temp;\n"
        "set local client_min_messages = warning;\n"
        # A function may call functions of files that follow its own (see install.sql).
        "set local check_function_bodies = off;"
    )


def require_schema(schema: Any) -> None:
    """Refuse a name that cannot be a schema of the queue's own, before anything is executed."""
    if not isinstance(schema, str) or not 1 <= len(schema.encode("utf-8", "replace")) <= 63 or "\0" in schema:
        raise invalid("schema", schema, "a name of 1 to 63 bytes")
    if schema.startswith("pg_") or schema in ("information_schema", "public"):
        raise invalid(
            "schema", schema, "the name of a schema for the queue alone, not 'public' or one of PostgreSQL's"
        )


def _install(schema: str) -> Steps[SchemaStatus]:
    yield from _require_server()
    current = yield from _current_status_for_other_role(schema)
    if current is not None:
        return current
    locked = None
    while locked is None:
        yield script("schema/create.sql")
        locked = yield from _lock(schema)
    installed = yield from inspect(schema)
    refuse_newer(schema, installed.version, installed.breaks_below)
    if not installed.is_queue:
        trust.require_empty(schema, locked)
        yield from creation(schema)
    elif installed.state is SchemaState.OUTDATED:
        yield from update(schema, installed)
    return (yield from inspect(schema)).status(schema)


def _migrate(schema: str) -> Steps[SchemaStatus]:
    yield from _require_server()
    locked = yield from _lock(schema)
    installed = yield from inspect(schema)
    if locked is None or not installed.is_queue:
        raise SchemaMissing(f"there is no queue in schema {schema!r}: run install() or `lonnymq install`")
    refuse_newer(schema, installed.version, installed.breaks_below)
    yield from update(schema, installed)
    return (yield from inspect(schema)).status(schema)


def _uninstall(schema: str) -> Steps[None]:
    yield from _require_server()
    if not (yield from object_names(schema)) >= CORE_TABLES:
        return
    yield script("schema/lock.sql")
    if not (yield from inspect(schema)).is_queue:
        return
    foreign = sorted((yield from object_names(schema)) - _queue_names())
    foreign = [name for name in foreign if not _is_created_at_run_time(name)]
    if foreign:
        raise SchemaOccupied(
            f"schema {schema!r} also contains {', '.join(foreign[:5])}: move or drop what is not the queue's"
        )
    yield Step(f"drop schema {quote_identifier(schema)} cascade")


def _require_server() -> Steps[None]:
    rows = yield Step(
        "select current_setting('server_version_num')::integer, current_setting('transaction_isolation')"
    )
    version, isolation = rows[0]
    if version < 140000:
        raise ServerTooOld(
            f"the queue needs PostgreSQL 14 or newer, but this server is version {version // 10000}:"
            " upgrade the server"
        )
    if isolation != "read committed":
        raise WrongIsolationLevel(
            f"install() and migrate() must run in a READ COMMITTED transaction, got {isolation.upper()}:"
            " begin the transaction with ISOLATION LEVEL READ COMMITTED"
        )


def _current_status_for_other_role(schema: str) -> Steps[SchemaStatus | None]:
    """Return the status if the queue belongs to another role and is current: then install() is done.

    A superuser gets None, because it must not be led to use a queue that an untrusted role owns.
    """
    assessed = yield from trust.assess(schema)
    if assessed is None or assessed.role == assessed.owner or assessed.role_is_superuser:
        return None
    installed = yield from inspect(schema)
    refuse_newer(schema, installed.version, installed.breaks_below)
    return installed.status(schema) if installed.state in (SchemaState.CURRENT, SchemaState.NEWER) else None


def _lock(schema: str) -> Steps[trust.Trust | None]:
    """Lock the schema until the transaction ends, and make sure that only its owner's code can run in it.

    Returns None if there is no such schema, or if the transaction that had it locked has dropped it.
    """
    assessed = yield from trust.assess(schema)
    if assessed is None:
        return None
    trust.require_owner(schema, assessed)
    yield script("schema/lock.sql")
    assessed = yield from trust.assess(schema)
    if assessed is not None:
        trust.require_owner(schema, assessed)
        trust.require_closed(schema, assessed)
    return assessed


def refuse_newer(schema: str, version: int, breaks_below: int) -> None:
    """Raise if the installed version requires a newer client."""
    if breaks_below > files.latest_version():
        raise SchemaTooNew(
            f"the queue in schema {schema!r} has version {version}, which needs a client of version"
            f" {breaks_below} or newer, but this client has {files.latest_version()}: upgrade lonnymq"
        )


def _finish(existing_objects: str) -> Steps[None]:
    """Record migrations and version, create partitions, and revoke what queue_grant did not give."""
    record = files.read("schema/record_migration.sql")
    for migration in files.migrations():
        yield Step(
            record.text.replace("{version}", str(migration.version))
            .replace("{name}", migration.name)
            .replace("{breaks_below}", str(migration.breaks_below)),
            origin=record.path,
        )
    yield Step("select history_prepare();")
    names = ", ".join(f"'{name}'" for name in sorted(_queue_names()))
    yield Step(f"select queue_seal(array[{names}], {existing_objects});")
    comment = files.read("schema/version_comment.sql")
    yield Step(comment.text.replace("{fingerprint}", files.fingerprint()), origin=comment.path)


def _queue_names() -> set[str]:
    kinds = ("table", "type", "sequence", "function", "view")
    return {name for kind in kinds for name in files.created(kind)}


def _is_created_at_run_time(name: str) -> bool:
    """Whether this is an index, a partition, or the sequence of an identity column of the queue."""
    return any(name.startswith(f"{table}_") for table in files.created("table"))
