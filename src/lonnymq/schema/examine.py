"""What a doctor asks of server and queue, as steps that change nothing; the questions are in sql/doctor/."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lonnymq.schema import files
from lonnymq.schema.steps import SchemaState, SchemaStatus, Step, Steps, check, enter


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
    may_look: bool
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
    """`schema` is None if this role may not even look which version is installed."""

    server: ServerFacts
    privileges: Privileges
    schema: SchemaStatus | None
    holders: tuple[Holder, ...]
    tables: tuple[TableFacts, ...]
    channels: tuple[OverdueChannel, ...]
    leases: tuple[LongLease, ...] = ()


def examine(schema: str) -> Steps[Examination]:
    """Ask what can be asked with this role's privileges, and skip the rest."""
    yield Step("select set_config('lonnymq.examined', %s, true)", (schema,))
    rows = yield _question("server")
    server = ServerFacts(*rows[0])
    rows = yield _question("privileges")
    is_there, is_owner, may_look, functions, views = rows[0]
    privileges = Privileges(is_there, is_owner, may_look, tuple(functions), tuple(views))
    status = (yield from check(schema)) if may_look else None
    holders = yield _question("holders")
    tables = yield _question("tables")
    channels, leases = [], []
    if status and status.state is not SchemaState.MISSING and "channel_status" in views:
        yield enter(schema)
        channels = yield _question("channels")
        # Whoever may see one of these views may see the other.
        leases = yield _question("leases")
    return Examination(
        server,
        privileges,
        status,
        tuple(Holder(*row) for row in holders),
        tuple(TableFacts(*row) for row in tables),
        tuple(OverdueChannel(*row) for row in channels),
        tuple(LongLease(*row) for row in leases),
    )


def _question(name: str) -> Step:
    return Step(files.read(f"doctor/{name}.sql").text, origin=f"doctor/{name}.sql")
