"""The changes that install and migrate make, as steps that run in a transaction of their caller."""

from collections.abc import Iterable

from lonnymq.schema import files
from lonnymq.schema.files import Index, Migration
from lonnymq.schema.inspection import InstalledSchema
from lonnymq.schema.step import Step, Steps, quote_identifier, script


def creation(schema: str) -> Steps[None]:
    """Create a queue in an empty schema."""
    yield set_search_path(schema)
    for file in (*files.contents(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _record(files.migrations())
    yield Step("select history_prepare();")
    yield _seal("'{}'")
    yield version_comment()


def update(schema: str, installed: InstalledSchema) -> Steps[None]:
    """Bring a queue from the installed version to the latest, in one transaction."""
    pending = [one for one in files.migrations() if one.version > installed.version]
    yield set_search_path(schema)
    for migration in pending:
        if not migration.is_contract:
            # The first one creates the table in which the others are recorded.
            is_first = migration.version == 1
            yield Step(migration.text, origin=migration.path) if is_first else apply_migration(migration)
    yield from switch()
    for migration in pending:
        if migration.is_contract:
            yield apply_migration(migration)


def switch() -> Steps[None]:
    """Replace all functions and views, and record that this version is installed."""
    yield script("schema/existing_objects.sql")
    for file in (*files.functions_and_views(), files.read("seed.sql")):
        yield Step(file.text, origin=file.path)
    yield from _record(one for one in files.migrations() if not one.is_contract)
    yield Step("select history_prepare_if_due();")
    yield _seal("current_setting('lonnymq.existing_objects')::text[]")
    yield script("schema/grant_again.sql")
    yield version_comment()


def apply_migration(migration: Migration) -> Step:
    """Return the step that runs a migration and records it, unless that has been done."""
    text = _fill("schema/apply_migration.sql", migration)
    text = text.replace("{text}", migration.text_in_transaction.rstrip())
    return Step(text, origin=migration.path)


def prepare_index(migration: Migration) -> Step:
    """Return the step that drops what is left of an index that was not built to the end."""
    path = "schema/prepare_index.sql"
    return Step(_fill(path, migration), origin=path)


def build_index(schema: str, index: Index) -> Step:
    """Return the statement that builds an index. It must not run in a transaction."""
    # The names in its definition are PostgreSQL's own.
    return Step(
        f"create index concurrently if not exists {quote_identifier(index.name)}"
        f" on {quote_identifier(schema)}.{quote_identifier(index.table)} {index.definition};"
    )


def record_index(migration: Migration) -> Step:
    """Return the step that records an index; it fails if the index was not built to the end."""
    path = "schema/record_index.sql"
    return Step(_fill(path, migration), origin=path)


def version_comment() -> Step:
    """Return the step that says which version the functions have, and which clients they exclude."""
    comment = files.read("schema/version_comment.sql")
    values = {
        "fingerprint": files.fingerprint(),
        "version": str(files.latest_version()),
        "breaks_below": str(max(migration.breaks_below for migration in files.migrations())),
    }
    text = comment.text
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return Step(text, origin=comment.path)


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


def queue_names() -> set[str]:
    kinds = ("table", "type", "sequence", "function", "view")
    return {name for kind in kinds for name in files.created(kind)}


def _record(migrations: Iterable[Migration]) -> Steps[None]:
    """Record that these migrations are part of the schema."""
    for migration in migrations:
        path = "schema/record_migration.sql"
        yield Step(_fill(path, migration), origin=path)


def _seal(existing_objects: str) -> Step:
    """Return the step that revokes what queue_grant did not give."""
    names = ", ".join(f"'{name}'" for name in sorted(queue_names()))
    return Step(f"select queue_seal(array[{names}], {existing_objects});")


def _fill(path: str, migration: Migration) -> str:
    return (
        files.read(path)
        .text.replace("{version}", str(migration.version))
        .replace("{name}", migration.name)
        .replace("{breaks_below}", str(migration.breaks_below))
        .replace("{index}", migration.index.name if migration.index else "")
    )
