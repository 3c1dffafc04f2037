"""Server, schema, privileges, settings, connections. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lonnymq import SchemaState
from lonnymq.cli import words
from lonnymq.cli.doctor.finding import MOST_NAMED, Finding, Level
from lonnymq.cli.quoting import shell
from lonnymq.schema.examine import Examination, ServerFacts
from lonnymq.schema.step import quoted
from lonnymq.schema.trust import named

CLOCK_OFF_S = 5
CONNECTIONS_WARNING, CONNECTIONS_PROBLEM = 0.8, 0.95


@dataclass(frozen=True)
class Risk:
    """A setting with values that it should not have, what comes of them, and what to do."""

    setting: str
    values: tuple[str, ...]
    level: Level
    consequence: str
    advice: str
    # For a time limit: what is shorter than this, and not 0, which means none.
    below_ms: int = 0

    def fits(self, value: str) -> bool:
        """Whether this is a value that the setting should not have."""
        number, _, unit = value.partition(" ")
        is_short = unit == "ms" and number.isdecimal() and 0 < int(number) < self.below_ms
        return value in self.values or is_short


RISKS = (
    Risk("autovacuum", ("off",), Level.PROBLEM, "dead rows are never cleaned up", "turn it on"),
    Risk("track_counts", ("off",), Level.PROBLEM, "autovacuum does not see dead rows", "turn it on"),
    Risk(
        "default_transaction_isolation",
        ("repeatable read", "serializable"),
        Level.PROBLEM,
        "dequeue and acknowledgements refuse it on borrowed connections and behind PgBouncer",
        "alter role ... set default_transaction_isolation = 'read committed', or begin transactions with it",
    ),
    Risk(
        "default_transaction_read_only",
        ("on",),
        Level.PROBLEM,
        "nothing can be created or worked on borrowed connections and behind PgBouncer",
        "alter role ... set default_transaction_read_only = off, or begin transactions as read write",
    ),
    Risk(
        "statement_timeout",
        (),
        Level.WARNING,
        "it may cut off calls on borrowed connections and behind PgBouncer",
        "make it 0 or at least 1s for the roles that use the queue",
        below_ms=1000,
    ),
    Risk(
        "transaction_timeout",
        (),
        Level.WARNING,
        "it may cut off calls, and always cuts off bulk loads that take longer",
        "make it 0 or at least 1s for the roles that use the queue",
        below_ms=1000,
    ),
    Risk(
        "lock_timeout",
        (),
        Level.WARNING,
        "calls on borrowed connections and behind PgBouncer raise Busy while a table is locked for a moment",
        "make it 0 or at least 100ms for the roles that use the queue",
        below_ms=100,
    ),
    Risk(
        "fsync",
        ("off",),
        Level.WARNING,
        "a crash of the machine may ruin the database",
        "turn it on, except for tests",
    ),
    Risk(
        "full_page_writes", ("off",), Level.WARNING, "a crash may ruin pages", "turn it on, except for tests"
    ),
    Risk(
        "synchronous_commit",
        ("off",),
        Level.WARNING,
        "a crash may lose the last moment's committed messages",
        "leave it on; the queue itself turns it off where a loss is only a redelivery",
    ),
    Risk(
        "idle_in_transaction_session_timeout",
        ("0 ms",),
        Level.NOTE,
        "a forgotten transaction stays open indefinitely",
        "set it for your applications' roles, say to 5min",
    ),
)


def place(server: ServerFacts, now: datetime) -> Iterator[Finding]:
    where = f"database {server.database!r} as {server.role!r}, PostgreSQL {server.version}"
    if server.version_number < 140000:
        yield Finding(
            Level.PROBLEM, "server", where, "the queue needs PostgreSQL 14 or newer: upgrade the server"
        )
    elif server.is_standby:
        yield Finding(
            Level.PROBLEM, "server", f"{where}: a standby, which only reads", "point --dsn at the primary"
        )
    else:
        yield Finding(Level.OK, "server", where)
    off_s = (server.clock - now).total_seconds()
    if abs(off_s) > CLOCK_OFF_S:
        side = "ahead of" if off_s > 0 else "behind"
        yield Finding(
            Level.WARNING,
            "clock",
            f"the server's clock is {words.span(abs(off_s))} {side} this machine's",
            "the queue goes by the server's clock: --at would be early or late; set the clocks (NTP)",
        )


def schema(facts: Examination) -> Iterator[Finding]:
    found = facts.schema
    shown = f"queue {found.schema!r}"
    match found.state:
        case SchemaState.CURRENT:
            yield Finding(Level.OK, "schema", f"{shown}, version {found.version}, current")
        case SchemaState.MISSING:
            missing_right = (
                "" if facts.server.may_create_schema else " (with a role that may create a schema)"
            )
            yield Finding(
                Level.PROBLEM,
                "schema",
                f"there is no {shown} in this database",
                f"lonnymq install{missing_right}; or name another with --schema, or another --dsn",
            )
        case SchemaState.OUTDATED:
            yield Finding(
                Level.PROBLEM,
                "schema",
                f"{shown} is of another release, or made by hand: version {found.version} of {found.latest}",
                "lonnymq migrate; messages stay and workers go on",
            )
        case SchemaState.NEWER:
            yield Finding(
                Level.NOTE,
                "schema",
                f"{shown} is of a newer release (version {found.version}), fine with this one",
                "install a newer release of lonnymq here, when convenient",
            )
        case SchemaState.INCOMPATIBLE:
            yield Finding(
                Level.PROBLEM,
                "schema",
                f"{shown} is of a newer release (version {found.version}), unknown to this one",
                "install a newer release of lonnymq here",
            )


def privileges(facts: Examination) -> Iterator[Finding]:
    if facts.schema.state is SchemaState.MISSING:
        return
    if facts.privileges.is_owner:
        yield Finding(Level.OK, "privileges", "this role owns the queue")
        return
    abilities = {
        "message_create": "create messages",
        "message_dequeue": "work messages",
        "channel_set": "operate",
        "queue_status": "look",
    }
    may = [ability for function, ability in abilities.items() if function in facts.privileges.functions]
    if may:
        yield Finding(Level.OK, "privileges", f"this role may {', '.join(may)}")
    else:
        yield Finding(
            Level.PROBLEM,
            "privileges",
            "this role may do nothing with the queue",
            f"as the queue's owner: lonnymq grant {shell(facts.server.role)} producer|worker|operator|reader",
        )


def unchecked(facts: Examination) -> Iterator[Finding]:
    """What this role may not look at, and nobody has looked at therefore."""
    if facts.schema.state is SchemaState.MISSING:
        return
    trust = facts.trust
    if trust is not None and trust.is_closed and not trust.may_be_called:
        yield Finding(
            Level.NOTE,
            "not checked",
            "workers, history, channels, the queue's invariants: to look at them runs code of"
            f" {trust.owner!r}, and this role is a superuser",
            f"if you trust that role, connect with its rights: options='-c role={trust.owner}' in the DSN",
        )
        return
    parts = {
        "workers": "queue_status" in facts.privileges.functions,
        "history": "queue_status" in facts.privileges.functions,
        "channels": "channel_status" in facts.privileges.views,
        "the queue's invariants": "queue_check" in facts.privileges.functions,
    }
    missing = [part for part, may in parts.items() if not may]
    if missing:
        yield Finding(
            Level.NOTE,
            "not checked",
            f"this role may not look at {', '.join(missing)}",
            f"as the queue's owner: lonnymq grant {shell(facts.server.role)} operator",
        )


def owner(facts: Examination) -> Iterator[Finding]:
    """Who else can have code run with the rights of the queue's owner, and how far those reach."""
    trust, found = facts.trust, facts.schema
    if trust is None or found.state is SchemaState.MISSING:
        return
    if trust.creators:
        name = quoted(found.schema)
        yield Finding(
            Level.PROBLEM,
            "owner",
            f"others may create in the schema: {', '.join(trust.creators[:MOST_NAMED])};"
            f" what they create there can run with the rights of {trust.owner!r}",
            f"revoke create on schema {name} from {trust.revoking}; then look again for objects of others",
        )
    if trust.strangers:
        yield Finding(
            Level.PROBLEM,
            "owner",
            f"the schema holds {named(trust.strangers)}, which can run with the rights of {trust.owner!r}",
            f"drop what you do not know and all triggers, and make {trust.owner!r} the owner of the rest",
        )
    if trust.owner_is_superuser:
        yield Finding(
            Level.WARNING,
            "owner",
            f"the queue's functions run with the rights of {trust.owner!r}, a superuser",
            "give the queue to a role without rights of its own: docs/howto/least-privilege.md",
        )
    elif trust.is_closed:
        yield Finding(Level.OK, "owner", f"the queue belongs to {trust.owner!r}, and holds nothing of others")


def settings(server: ServerFacts) -> Iterator[Finding]:
    is_calm = True
    for risk in RISKS:
        value = server.settings.get(risk.setting)
        if value is not None and risk.fits(value):
            is_calm = is_calm and risk.level is Level.NOTE
            shown = "0" if value == "0 ms" else value
            detail = f"{risk.setting} is {shown}: {risk.consequence}"
            yield Finding(risk.level, "settings", detail, risk.advice)
    if is_calm:
        yield Finding(Level.OK, "settings", "autovacuum, durability and isolation are as they should be")


def connections(server: ServerFacts) -> Iterator[Finding]:
    most = int(server.settings.get("max_connections", "0"))
    if not most:
        return
    share = server.connections / most
    detail = f"{server.connections} of {most} connections are taken"
    advice = "a pooler such as PgBouncer, fewer workers or smaller pools; or raise max_connections"
    if share >= CONNECTIONS_PROBLEM:
        yield Finding(Level.PROBLEM, "connections", detail, advice)
    elif share >= CONNECTIONS_WARNING:
        yield Finding(Level.WARNING, "connections", detail, advice)
    else:
        yield Finding(Level.OK, "connections", detail)
