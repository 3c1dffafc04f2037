"""Findings about server, schema, privileges, owner, settings and connections."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lonnymq import formatting
from lonnymq.diagnostics import Examination, ServerFacts
from lonnymq.doctor.finding import MAX_LISTED, Finding, Level
from lonnymq.quoting import shell_argument
from lonnymq.schema import SchemaState
from lonnymq.schema.step import quote_identifier
from lonnymq.schema.trust import list_objects

MAX_CLOCK_OFFSET_S = 5
CONNECTIONS_WARNING, CONNECTIONS_PROBLEM = 0.8, 0.95


@dataclass(frozen=True)
class Risk:
    """A setting, its harmful values, their consequence, and what to do."""

    setting: str
    values: tuple[str, ...]
    level: Level
    consequence: str
    advice: str
    # For timeouts: shorter values are harmful, except for 0, which means no limit.
    below_ms: int = 0

    def applies_to(self, value: str) -> bool:
        """Whether this value of the setting is harmful."""
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
        "dequeue and acknowledgements fail on borrowed connections and behind PgBouncer",
        "alter role ... set default_transaction_isolation = 'read committed', or begin transactions with it",
    ),
    Risk(
        "default_transaction_read_only",
        ("on",),
        Level.PROBLEM,
        "messages can be neither created nor leased on borrowed connections and behind PgBouncer",
        "alter role ... set default_transaction_read_only = off, or begin transactions as read write",
    ),
    Risk(
        "statement_timeout",
        (),
        Level.WARNING,
        "it may cancel calls on borrowed connections and behind PgBouncer",
        "set it to 0 or at least 1s for the roles that use the queue",
        below_ms=1000,
    ),
    Risk(
        "transaction_timeout",
        (),
        Level.WARNING,
        "it may cancel calls, and always cancels bulk loads that take longer",
        "set it to 0 or at least 1s for the roles that use the queue",
        below_ms=1000,
    ),
    Risk(
        "lock_timeout",
        (),
        Level.WARNING,
        "calls on borrowed connections and behind PgBouncer raise Busy when a table is locked briefly",
        "set it to 0 or at least 100ms for the roles that use the queue",
        below_ms=100,
    ),
    Risk(
        "fsync",
        ("off",),
        Level.WARNING,
        "a crash of the machine may corrupt the database",
        "turn it on, except for tests",
    ),
    Risk(
        "full_page_writes",
        ("off",),
        Level.WARNING,
        "a crash may corrupt pages",
        "turn it on, except for tests",
    ),
    Risk(
        "synchronous_commit",
        ("off",),
        Level.WARNING,
        "a crash may lose messages committed just before it",
        "leave it on; the queue itself turns it off where a loss only means a redelivery",
    ),
    Risk(
        "idle_in_transaction_session_timeout",
        ("0 ms",),
        Level.NOTE,
        "a forgotten transaction stays open indefinitely",
        "set it for your applications' roles, for example to 5min",
    ),
)


def server(facts: ServerFacts, now: datetime) -> Iterator[Finding]:
    where = f"database {facts.database!r}, role {facts.role!r}, PostgreSQL {facts.version}"
    if facts.version_number < 140000:
        yield Finding(
            Level.PROBLEM, "server", where, "the queue needs PostgreSQL 14 or newer: upgrade the server"
        )
    elif facts.is_standby:
        yield Finding(
            Level.PROBLEM, "server", f"{where}: a read-only standby", "connect to the primary with --dsn"
        )
    else:
        yield Finding(Level.OK, "server", where)
    offset_s = (facts.clock - now).total_seconds()
    if abs(offset_s) > MAX_CLOCK_OFFSET_S:
        side = "ahead of" if offset_s > 0 else "behind"
        yield Finding(
            Level.WARNING,
            "clock",
            f"the server's clock is {formatting.duration(abs(offset_s))} {side} this machine's",
            "the queue uses the server's clock, so --at would be early or late: synchronize the clocks (NTP)",
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
                f"lonnymq install{missing_right}; or choose another --schema or --dsn",
            )
        case SchemaState.OUTDATED:
            yield Finding(
                Level.PROBLEM,
                "schema",
                f"{shown} was installed by another release, or changed by hand:"
                f" version {found.version} of {found.latest}",
                "lonnymq migrate; messages stay, and workers may keep running",
            )
        case SchemaState.NEWER:
            yield Finding(
                Level.NOTE,
                "schema",
                f"{shown} is of a newer release (version {found.version}), which this one supports",
                "install a newer release of lonnymq on this machine when convenient",
            )
        case SchemaState.INCOMPATIBLE:
            yield Finding(
                Level.PROBLEM,
                "schema",
                f"{shown} is of a newer release (version {found.version}), which this one does not support",
                "install a newer release of lonnymq on this machine",
            )


def privileges(facts: Examination) -> Iterator[Finding]:
    if facts.schema.state is SchemaState.MISSING:
        return
    if facts.privileges.is_owner:
        yield Finding(Level.OK, "privileges", "this role owns the queue")
        return
    abilities = {
        "message_create": "create messages",
        "message_dequeue": "run workers",
        "channel_set": "operate the queue",
        "queue_pulse": "inspect the queue",
    }
    allowed = [ability for function, ability in abilities.items() if function in facts.privileges.functions]
    if allowed:
        yield Finding(Level.OK, "privileges", f"this role may {', '.join(allowed)}")
    else:
        yield Finding(
            Level.PROBLEM,
            "privileges",
            "this role has no privileges on the queue",
            "as the queue's owner: lonnymq grant"
            f" {shell_argument(facts.server.role)} producer|worker|operator|reader",
        )


def unchecked(facts: Examination) -> Iterator[Finding]:
    """Report what was skipped because this role may not inspect it."""
    if facts.schema.state is SchemaState.MISSING:
        return
    trust = facts.trust
    if trust is not None and trust.is_closed and not trust.may_be_called:
        yield Finding(
            Level.NOTE,
            "not checked",
            "workers, history, channels and the queue's invariants: this would run code of"
            f" {trust.owner!r} with the privileges of a superuser",
            f"if you trust that role, connect as that role: options='-c role={trust.owner}' in the DSN",
        )
        return
    parts = {
        "workers": "queue_pulse" in facts.privileges.functions,
        "history": "queue_pulse" in facts.privileges.functions,
        "channels": "channel_status" in facts.privileges.views,
        "the queue's invariants": "queue_check" in facts.privileges.functions,
    }
    missing = [part for part, is_allowed in parts.items() if not is_allowed]
    if missing:
        yield Finding(
            Level.NOTE,
            "not checked",
            f"this role may not inspect {', '.join(missing)}",
            f"as the queue's owner: lonnymq grant {shell_argument(facts.server.role)} operator",
        )


def owner(facts: Examination) -> Iterator[Finding]:
    """Report who else can run code with the privileges of the queue's owner, and how far these reach."""
    trust, found = facts.trust, facts.schema
    if trust is None or found.state is SchemaState.MISSING:
        return
    if trust.creators:
        name = quote_identifier(found.schema)
        yield Finding(
            Level.PROBLEM,
            "owner",
            f"other roles may create objects in the schema: {', '.join(trust.creators[:MAX_LISTED])};"
            f" such objects can run with the privileges of {trust.owner!r}",
            f"revoke create on schema {name} from {trust.revoke_list};"
            " then run this again to find such objects",
        )
    if trust.unsafe_objects:
        yield Finding(
            Level.PROBLEM,
            "owner",
            f"the schema holds {list_objects(trust.unsafe_objects)}, which can run with the privileges of"
            f" {trust.owner!r}",
            f"drop unknown objects and all triggers, and make {trust.owner!r} the owner of the rest",
        )
    if trust.owner_is_superuser:
        yield Finding(
            Level.WARNING,
            "owner",
            f"the queue's functions run with the privileges of {trust.owner!r}, a superuser",
            "give the queue to a role without other privileges: docs/howto/least-privilege.md",
        )
    elif trust.is_closed:
        yield Finding(
            Level.OK,
            "owner",
            f"the queue belongs to {trust.owner!r}, and its schema holds no objects of other roles",
        )


def settings(server: ServerFacts) -> Iterator[Finding]:
    are_fine = True
    for risk in RISKS:
        value = server.settings.get(risk.setting)
        if value is not None and risk.applies_to(value):
            are_fine = are_fine and risk.level is Level.NOTE
            shown = "0" if value == "0 ms" else value
            detail = f"{risk.setting} is {shown}: {risk.consequence}"
            yield Finding(risk.level, "settings", detail, risk.advice)
    if are_fine:
        yield Finding(Level.OK, "settings", "autovacuum, durability and isolation are set as recommended")


def connections(server: ServerFacts) -> Iterator[Finding]:
    maximum = int(server.settings.get("max_connections", "0"))
    if not maximum:
        return
    share = server.connections / maximum
    detail = f"{server.connections} of {maximum} connections are in use"
    advice = "use a pooler such as PgBouncer, fewer workers or smaller pools; or raise max_connections"
    if share >= CONNECTIONS_PROBLEM:
        yield Finding(Level.PROBLEM, "connections", detail, advice)
    elif share >= CONNECTIONS_WARNING:
        yield Finding(Level.WARNING, "connections", detail, advice)
    else:
        yield Finding(Level.OK, "connections", detail)
