"""Installs, migrates, inspects and uninstalls, as steps: SQL to execute, whose rows decide what follows.

There is no I/O here: the client executes all steps in one transaction and sends back the rows of each.
"""

from lonnymq.errors import SchemaMissing, SchemaOccupied, invalid
from lonnymq.schema import changes, files, phases, trust
from lonnymq.schema.inspection import (
    CORE_TABLES,
    InstalledSchema,
    SchemaState,
    SchemaStatus,
    inspect,
    object_names,
)
from lonnymq.schema.requirements import lock, refuse_newer, require_schema, require_server
from lonnymq.schema.step import Step, Steps, quote_identifier, script, script_text, with_safe_search_path


def install(schema: str) -> Steps[SchemaStatus]:
    """Install the queue, or bring it up to date. Does nothing if this version is installed."""
    require_schema(schema)
    return (yield from with_safe_search_path(schema, _install(schema)))


def migrate(schema: str) -> Steps[SchemaStatus]:
    """Bring an installed queue up to date in one transaction, which keeps all locks until its end.

    See `phases` for a migration whose locks are short.
    """
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
        change = [Step(f"create schema {quote_identifier(schema)};"), *changes.creation(schema)]
    elif not 1 <= version <= files.latest_version():
        raise invalid("version", version, f"None, or a version from 1 to {files.latest_version()}")
    elif within_transaction:
        change = [*trust.guard(schema), *changes.update(schema, InstalledSchema(True, version))]
    else:
        return script_text(phases.script(schema, version))
    if within_transaction:
        return script_text(
            [script("schema/save_settings.sql"), *change, script("schema/restore_settings.sql")]
        )
    return script_text([Step("begin;"), *change, Step("commit;")])


def _install(schema: str) -> Steps[SchemaStatus]:
    yield from require_server()
    current = yield from _current_status_for_other_role(schema)
    if current is not None:
        return current
    locked = None
    while locked is None:
        yield script("schema/create.sql")
        locked = yield from lock(schema)
    installed = yield from inspect(schema)
    refuse_newer(schema, installed.version, installed.breaks_below)
    if not installed.is_queue:
        trust.require_empty(schema, locked)
        yield from changes.creation(schema)
    elif installed.state is SchemaState.OUTDATED:
        yield from changes.update(schema, installed)
    return (yield from inspect(schema)).status(schema)


def _migrate(schema: str) -> Steps[SchemaStatus]:
    yield from require_server()
    locked = yield from lock(schema)
    installed = yield from inspect(schema)
    if locked is None or not installed.is_queue:
        raise SchemaMissing(f"there is no queue in schema {schema!r}: run install() or `lonnymq install`")
    refuse_newer(schema, installed.version, installed.breaks_below)
    # The functions of a newer version, which allows this client, are newer than ours.
    if installed.version <= files.latest_version():
        yield from changes.update(schema, installed)
    return (yield from inspect(schema)).status(schema)


def _uninstall(schema: str) -> Steps[None]:
    yield from require_server()
    if not (yield from object_names(schema)) >= CORE_TABLES:
        return
    yield script("schema/lock.sql")
    if not (yield from inspect(schema)).is_queue:
        return
    foreign = sorted((yield from object_names(schema)) - changes.queue_names())
    foreign = [name for name in foreign if not _is_created_at_run_time(name)]
    if foreign:
        raise SchemaOccupied(
            f"schema {schema!r} also contains {', '.join(foreign[:5])}: move or drop what is not the queue's"
        )
    yield Step(f"drop schema {quote_identifier(schema)} cascade")


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


def _is_created_at_run_time(name: str) -> bool:
    """Whether this is an index, a partition, or the sequence of an identity column of the queue."""
    return any(name.startswith(f"{table}_") for table in files.created("table"))
