"""Facts about the server and the queue for `lonnymq doctor`, read by steps that change nothing.

The queries are in sql/doctor/.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lonnymq.schema import inspection, trust
from lonnymq.schema.changes import set_search_path
from lonnymq.schema.inspection import SchemaStatus
from lonnymq.schema.step import Steps, query, with_safe_search_path
from lonnymq.schema.trust import Trust

# The first version that knows with which version of its collation a database was created.
VERSION_WITH_COLLATION = 150_000


@dataclass(frozen=True)
class ServerFacts:
    """The server and the session; `settings` are as PostgreSQL shows them, with their units."""

    database: str
    role: str
    is_superuser: bool
    sees_all_sessions: bool
    version_number: int
    version: str
    is_standby: bool
    clock: datetime
    connections: int
    may_create_schema: bool
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Privileges:
    """What the role may do: which of a few representative `functions` and `views` it may use."""

    is_there: bool
    is_owner: bool
    functions: tuple[str, ...]
    views: tuple[str, ...]


@dataclass(frozen=True)
class VacuumBlocker:
    """What prevents vacuum from removing dead rows; `age_s` is None for a replication slot."""

    kind: str
    name: str
    owner: str
    application: str
    state: str | None
    age_s: float | None
    detail: str


@dataclass(frozen=True)
class TableFacts:
    name: str
    bytes: int
    live_rows: int
    dead_rows: int
    vacuumed_at: datetime | None


@dataclass(frozen=True)
class OverdueChannel:
    """A channel whose next message is due but not released."""

    channel: str
    reason: str
    waiting: int
    leased: int
    overdue_s: float


@dataclass(frozen=True)
class LongLease:
    """A message that one attempt has held for a very long time and still holds."""

    message_id: int
    channel: str | None
    worker: str | None
    held_s: float


@dataclass(frozen=True)
class FailoverFact:
    """Something to know after a failover, a restore or a logical copy; `kind` says what the others mean."""

    kind: str
    name: str
    number: int
    detail: str


@dataclass(frozen=True)
class Examination:
    """All facts; `trust` is None if there is no schema.

    `failover` is None if it was not asked for, or if this role may not read the queue's tables.
    """

    server: ServerFacts
    privileges: Privileges
    trust: Trust | None
    schema: SchemaStatus
    vacuum_blockers: tuple[VacuumBlocker, ...]
    tables: tuple[TableFacts, ...]
    channels: tuple[OverdueChannel, ...]
    leases: tuple[LongLease, ...] = ()
    failover: tuple[FailoverFact, ...] | None = None


def examine(schema: str, *, after_failover: bool = False) -> Steps[Examination]:
    """Read what this role's privileges allow, and skip the rest."""
    return (yield from with_safe_search_path(schema, _examine(schema, after_failover)))


def _examine(schema: str, after_failover: bool) -> Steps[Examination]:
    rows = yield query("doctor/server.sql")
    server = ServerFacts(*rows[0])
    rows = yield query("doctor/privileges.sql")
    is_there, is_owner, functions, views = rows[0]
    privileges = Privileges(is_there, is_owner, tuple(functions), tuple(views))
    assessed = yield from trust.assess(schema)
    status = (yield from inspection.inspect(schema)).status(schema)
    vacuum_blockers = yield query("doctor/vacuum_blockers.sql")
    tables = yield query("doctor/tables.sql")
    channels, leases = [], []
    failover: tuple[FailoverFact, ...] | None = None
    # Skipped if this could run another role's functions with the privileges of this session.
    if status.version and assessed and assessed.may_be_called and "channel_status" in views:
        yield set_search_path(schema)
        channels = yield query("doctor/channels.sql")
        # queue_grant gives both views to the same kinds of role.
        leases = yield query("doctor/leases.sql")
        if after_failover and is_owner and not server.is_standby:
            failover = yield from _examine_failover(server)
    return Examination(
        server,
        privileges,
        assessed,
        status,
        tuple(VacuumBlocker(*row) for row in vacuum_blockers),
        tuple(TableFacts(*row) for row in tables),
        tuple(OverdueChannel(*row) for row in channels),
        tuple(LongLease(*row) for row in leases),
        failover,
    )


def _examine_failover(server: ServerFacts) -> Steps[tuple[FailoverFact, ...]]:
    rows = yield query("doctor/after_failover.sql")
    facts = [FailoverFact(*row) for row in rows]
    if server.version_number >= VERSION_WITH_COLLATION:
        rows = yield query("doctor/collation.sql")
        facts += [FailoverFact("collation", str(indexed), 0, str(actual)) for indexed, actual in rows]
    return tuple(facts)
