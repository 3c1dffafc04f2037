"""What is installed in a schema."""

from dataclasses import dataclass
from enum import StrEnum

from lonnymq.schema import files
from lonnymq.schema.step import Step, Steps, quoted

# Tables that every version has.
MARKS = {"migration", "setting", "turn", "message"}


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
    mark: str | None = None

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
        if self.version < latest or self.mark != release_mark():
            return SchemaState.OUTDATED
        return SchemaState.CURRENT

    def status(self, schema: str) -> SchemaStatus:
        return SchemaStatus(schema, self.state, self.version, files.latest_version())


def release_mark() -> str:
    """Return the note that is left on what this release has applied."""
    return f"lonnymq {files.fingerprint()}"


def look(schema: str) -> Steps[Found]:
    """Find out what is there, without touching anything that might not be ours."""
    rows = yield Step("select 1 from pg_namespace where nspname = %s", (schema,))
    if not rows:
        return Found(False)
    # Only a plain table is read: a type, a policy or a generated column of others would run code of others.
    rows = yield Step(
        "select obj_description(c.oid, 'pg_class') from pg_class c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relname = 'migration' and c.relkind = 'r' and not c.relrowsecurity"
        " and (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attgenerated = ''"
        " and a.attname in ('version', 'breaks_below') and a.atttypid = 'integer'::regtype) = 2",
        (schema,),
    )
    if not rows or not (yield from names(schema)) >= MARKS:
        return Found(True)
    mark = rows[0][0]
    rows = yield Step(
        "select coalesce(max(version), 0), coalesce(max(breaks_below), 0)"
        f" from only {quoted(schema)}.migration"
    )
    version, breaks_below = rows[0]
    return Found(True, version, breaks_below, mark)


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
