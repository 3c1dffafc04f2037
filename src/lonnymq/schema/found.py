"""What is installed in a schema."""

import re
from dataclasses import dataclass
from enum import StrEnum

from lonnymq.schema import files
from lonnymq.schema.step import Step, Steps, quoted

# Tables that every version has.
MARKS = {"migration", "setting", "turn", "message"}
# The comment on table migration: which files were applied, and what the ledger says (see schema/mark.sql).
MARK = re.compile(r"lonnymq (?P<fingerprint>\w{1,64}) (?P<version>[0-9]{1,9}) (?P<breaks_below>[0-9]{1,9})")


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


def read_mark(comment: str | None) -> Found | None:
    """Return what the comment on table migration says; None if it is no mark."""
    mark = MARK.fullmatch(comment or "")
    return mark and Found(True, int(mark["version"]), int(mark["breaks_below"]), mark["fingerprint"])


def look(schema: str) -> Steps[Found]:
    """Find out what is there, from PostgreSQL's catalog alone.

    Even to read a plain table runs code of its owner, as in the predicate of an index; and what was a table
    may be a view by then.
    """
    rows = yield Step("select 1 from pg_namespace where nspname = %s", (schema,))
    if not rows:
        return Found(False)
    rows = yield Step(
        "select obj_description(c.oid, 'pg_class'), u.oid = c.relowner and u.oid = n.nspowner"
        " and (select count(*) from pg_attribute a where a.attrelid = c.oid"
        " and a.attname in ('version', 'breaks_below') and a.atttypid = 'integer'::regtype) = 2"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " join pg_roles u on u.rolname = current_user"
        " where n.nspname = %s and c.relname = 'migration' and c.relkind = 'r'",
        (schema,),
    )
    if not rows or not (yield from names(schema)) >= MARKS:
        return Found(True)
    comment, is_own_ledger = rows[0]
    found = read_mark(comment)
    if found is not None or not is_own_ledger:
        return found or Found(True)
    # A restore without comments lost the mark: the owner asks its own table, and migrate() marks it again.
    rows = yield Step(
        "select coalesce(max(version), 0), coalesce(max(breaks_below), 0)"
        f" from only {quoted(schema)}.migration"
    )
    version, breaks_below = rows[0]
    return Found(True, version, breaks_below)


def names(schema: str) -> Steps[set[str]]:
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
