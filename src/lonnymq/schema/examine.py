"""What a doctor asks of server and queue, as steps that change nothing; the questions are in sql/doctor/."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lonnymq.schema import found, trust
from lonnymq.schema.found import SchemaStatus
from lonnymq.schema.step import Steps, question, secluded
from lonnymq.schema.steps import enter
from lonnymq.schema.trust import Trust


@dataclass(frozen=True)
class ServerFacts:
    """Who and where the session is; `settings` are as PostgreSQL shows them, with their unit."""

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
    """What the role may do: `functions` and `views` are those of a few telling ones that it may use."""

    is_there: bool
    is_owner: bool
    functions: tuple[str, ...]
    views: tuple[str, ...]


@dataclass(frozen=True)
class Holder:
    """What keeps old rows from being cleaned up; `age_s` is None for a replication slot."""

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
    """A channel whose next message is due and not released."""

    channel: str
    reason: str
    waiting: int
    leased: int
    overdue_s: float


@dataclass(frozen=True)
class LongLease:
    """A message that one attempt has held for very long, and still holds."""

    message_id: int
    channel: str | None
    worker: str | None
    held_s: float


@dataclass(frozen=True)
class Examination:
    """`trust` is None if there is no schema."""

    server: ServerFacts
    privileges: Privileges
    trust: Trust | None
    schema: SchemaStatus
    holders: tuple[Holder, ...]
    tables: tuple[TableFacts, ...]
    channels: tuple[OverdueChannel, ...]
    leases: tuple[LongLease, ...] = ()


def examine(schema: str) -> Steps[Examination]:
    """Ask what can be asked with this role's privileges, and skip the rest."""
    return (yield from secluded(schema, _examine(schema)))


def _examine(schema: str) -> Steps[Examination]:
    rows = yield question("doctor/server.sql")
    server = ServerFacts(*rows[0])
    rows = yield question("doctor/privileges.sql")
    is_there, is_owner, functions, views = rows[0]
    privileges = Privileges(is_there, is_owner, tuple(functions), tuple(views))
    held = yield from trust.look(schema)
    status = (yield from found.look(schema)).status(schema)
    holders = yield question("doctor/holders.sql")
    tables = yield question("doctor/tables.sql")
    channels, leases = [], []
    # Not where somebody else's functions may be called, with the rights of whoever examines.
    if status.version and held and held.may_be_called and "channel_status" in views:
        yield enter(schema)
        channels = yield question("doctor/channels.sql")
        # Whoever may see one of these views may see the other.
        leases = yield question("doctor/leases.sql")
    return Examination(
        server,
        privileges,
        held,
        status,
        tuple(Holder(*row) for row in holders),
        tuple(TableFacts(*row) for row in tables),
        tuple(OverdueChannel(*row) for row in channels),
        tuple(LongLease(*row) for row in leases),
    )
