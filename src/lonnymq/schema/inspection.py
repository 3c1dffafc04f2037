"""Inspects which version of the queue, if any, is installed in a schema."""

import re
from dataclasses import dataclass
from enum import StrEnum

from lonnymq.schema import files
from lonnymq.schema.step import Step, Steps, quote_identifier

# Tables that every version has.
CORE_TABLES = {"migration", "setting", "turn", "message"}
# The comment on the table migration (see sql/schema/version_comment.sql).
VERSION_COMMENT = re.compile(
    r"lonnymq (?P<fingerprint>\w{1,64}) (?P<version>[0-9]{1,9}) (?P<breaks_below>[0-9]{1,9})"
)


class SchemaState(StrEnum):
    MISSING = "missing"
    OUTDATED = "outdated"
    CURRENT = "current"
    NEWER = "newer"
    INCOMPATIBLE = "incompatible"


@dataclass(frozen=True)
class SchemaStatus:
    """What is installed: `version` is 0 if there is no queue; `latest` is the version of this client."""

    schema: str
    state: SchemaState
    version: int
    latest: int


@dataclass(frozen=True)
class InstalledSchema:
    """What the catalog says about a schema."""

    exists: bool
    version: int = 0
    breaks_below: int = 0
    fingerprint: str | None = None

    @property
    def is_queue(self) -> bool:
        return self.version > 0

    @property
    def state(self) -> SchemaState:
        latest = files.latest_version()
        if not self.is_queue:
            return SchemaState.MISSING
        if self.breaks_below > latest:
            return SchemaState.INCOMPATIBLE
        if self.version > latest:
            return SchemaState.NEWER
        if self.version < latest or self.fingerprint != files.fingerprint():
            return SchemaState.OUTDATED
        return SchemaState.CURRENT

    def status(self, schema: str) -> SchemaStatus:
        return SchemaStatus(schema, self.state, self.version, files.latest_version())


def parse_version_comment(comment: str | None) -> InstalledSchema | None:
    """Return what the comment on the table migration says; None if it is not a version comment."""
    match = VERSION_COMMENT.fullmatch(comment or "")
    if match is None:
        return None
    return InstalledSchema(True, int(match["version"]), int(match["breaks_below"]), match["fingerprint"])


def inspect(schema: str) -> Steps[InstalledSchema]:
    """Find out what is installed, from PostgreSQL's catalog alone.

    Even reading a plain table can run code of its owner, such as the predicate of an index, and a table may
    have been replaced by a view.
    """
    rows = yield Step("select 1 from pg_namespace where nspname = %s", (schema,))
    if not rows:
        return InstalledSchema(False)
    rows = yield Step(
        "select obj_description(c.oid, 'pg_class'), u.oid = c.relowner and u.oid = n.nspowner"
        " and (select count(*) from pg_attribute a where a.attrelid = c.oid"
        " and a.attname in ('version', 'breaks_below') and a.atttypid = 'integer'::regtype) = 2"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " join pg_roles u on u.rolname = current_user"
        " where n.nspname = %s and c.relname = 'migration' and c.relkind = 'r'",
        (schema,),
    )
    if not rows or not (yield from object_names(schema)) >= CORE_TABLES:
        return InstalledSchema(True)
    comment, is_own_table = rows[0]
    installed = parse_version_comment(comment)
    if installed is not None or not is_own_table:
        return installed or InstalledSchema(True)
    # A restore may have lost the comment. Then the owner reads its own table, and migrate() adds the comment.
    rows = yield Step(
        "select coalesce(max(version), 0), coalesce(max(breaks_below), 0)"
        f" from only {quote_identifier(schema)}.migration"
    )
    version, breaks_below = rows[0]
    return InstalledSchema(True, version, breaks_below)


def object_names(schema: str) -> Steps[set[str]]:
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
