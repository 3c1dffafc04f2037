"""doctor: each problem is found, with advice; a healthy queue is reported as healthy."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import (
    HistoryMode,
    HistoryPartition,
    Problem,
    Queue,
    QueuePulse,
    SchemaState,
    SchemaStatus,
    WorkerState,
    WorkerStatus,
)
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.diagnostics import (
    Examination,
    LongLease,
    OverdueChannel,
    Privileges,
    ServerFacts,
    TableFacts,
    VacuumBlocker,
)
from lonnymq.doctor.finding import Level, QueueFacts
from lonnymq.doctor.findings import findings
from lonnymq.schema.trust import Trust
from tests.cli.conftest import Run, runner
from tests.conftest import Connect, Database

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SETTINGS = {
    "autovacuum": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "idle_in_transaction_session_timeout": "300000 ms",
    "max_connections": "100",
    "synchronous_commit": "on",
    "track_counts": "on",
}
SERVER = ServerFacts("shop", "ann", False, True, 160004, "16.4", False, NOW, 10, True, SETTINGS)
MAY_ALL = Privileges(
    True,
    False,
    ("message_create", "message_dequeue", "channel_set", "queue_pulse", "queue_check"),
    ("channel_status",),
)
TRUST = Trust("lonny", False, "ann", False, (), (), ())
HEALTHY = Examination(
    SERVER,
    MAY_ALL,
    TRUST,
    SchemaStatus("lonnymq", SchemaState.CURRENT, 1, 1),
    (),
    (TableFacts("message", 8192, 10, 10, NOW),),
    (),
)
PULSE = QueuePulse(
    at=NOW,
    due_channels=0,
    demand=0,
    is_due_complete=True,
    turn_lag_s=0.0,
    first_due_at=None,
    first_expiry_at=None,
    expired=0,
    sleepers=1,
    channels=5,
    waiting=10,
    scheduled=0,
    leased=2,
    dead=0,
    unfolded_wakes=3,
    history_overflow=0,
    is_exact=True,
    created_total=12,
    leased_total=2,
    ended_total=0,
    history=HistoryMode.OFF,
    oldest_transaction_s=None,
    version=1,
)
QUEUE_FACTS = QueueFacts(PULSE, [], [], [])


def server(**changes: Any) -> Examination:
    return replace(HEALTHY, server=replace(SERVER, **changes))


def setting(name: str, value: str) -> Examination:
    return server(settings={**SETTINGS, name: value})


def state(state: SchemaState, version: int = 1) -> Examination:
    return replace(HEALTHY, schema=SchemaStatus("lonnymq", state, version, 1))


def trust(**changes: Any) -> Examination:
    return replace(HEALTHY, trust=replace(TRUST, **changes))


def blocked_by(age_s: float | None, kind: str = "transaction") -> Examination:
    return replace(
        HEALTHY,
        vacuum_blockers=(VacuumBlocker(kind, "123", "ann", "psql", "idle in transaction", age_s, "x"),),
    )


def queue_facts(**changes: Any) -> QueueFacts:
    return replace(QUEUE_FACTS, pulse=replace(PULSE, **changes))


def process(name: str, state: WorkerState = WorkerState.WORKING, version: str = "1.0") -> WorkerStatus:
    """Return a process that reported two minutes ago; whether it is gone is for the queue to say."""
    return WorkerStatus(
        worker=name,
        state=state,
        host="web",
        pid=7,
        version=version,
        tasks=(),
        slots=4,
        busy=1,
        held=2,
        holds=(),
        started_at=NOW,
        seen_at=NOW - timedelta(minutes=2),
        drain_at=None,
    )


def fleet(*processes: WorkerStatus, **changes: Any) -> QueueFacts:
    return replace(queue_facts(**changes), workers=list(processes))


OVERDUE = replace(HEALTHY, channels=(OverdueChannel("acme", "ready", 5, 0, 120.0),))
DAY = HistoryPartition("history_20300101", 0, False, True, False)

PROBLEMS: list[tuple[str, Examination, QueueFacts, Level, str, str]] = [
    ("server", server(version_number=130001), QUEUE_FACTS, Level.PROBLEM, "PostgreSQL", "14 or newer"),
    ("server", server(is_standby=True), QUEUE_FACTS, Level.PROBLEM, "standby", "the primary"),
    ("clock", server(clock=NOW + timedelta(minutes=3)), QUEUE_FACTS, Level.WARNING, "3m ahead of", "NTP"),
    ("schema", state(SchemaState.MISSING, 0), QUEUE_FACTS, Level.PROBLEM, "no queue", "lonnymq install"),
    ("schema", state(SchemaState.OUTDATED), QUEUE_FACTS, Level.PROBLEM, "another release", "lonnymq migrate"),
    ("schema", state(SchemaState.NEWER, 2), QUEUE_FACTS, Level.NOTE, "newer", "install a newer"),
    ("schema", state(SchemaState.INCOMPATIBLE, 9), QUEUE_FACTS, Level.PROBLEM, "newer", "install a newer"),
    (
        "not checked",
        replace(HEALTHY, trust=replace(TRUST, role_is_superuser=True)),
        QUEUE_FACTS,
        Level.NOTE,
        "run code of 'lonny' with the privileges of a superuser",
        "-c role=lonny",
    ),
    (
        "privileges",
        replace(HEALTHY, privileges=replace(MAY_ALL, functions=())),
        QUEUE_FACTS,
        Level.PROBLEM,
        "no privileges",
        "lonnymq grant ann",
    ),
    (
        "owner",
        trust(owner="postgres", owner_is_superuser=True),
        QUEUE_FACTS,
        Level.WARNING,
        "'postgres', a superuser",
        "least-privilege",
    ),
    (
        "owner",
        trust(creators=("PUBLIC", "Bob")),
        QUEUE_FACTS,
        Level.PROBLEM,
        "PUBLIC, Bob; such objects",
        'revoke create on schema "lonnymq" from PUBLIC, "Bob"',
    ),
    (
        "owner",
        trust(unsafe_objects=("function lonnymq.to_char(date,text) of bob",)),
        QUEUE_FACTS,
        Level.PROBLEM,
        "holds function lonnymq.to_char(date,text) of bob",
        "drop unknown objects",
    ),
    ("settings", setting("autovacuum", "off"), QUEUE_FACTS, Level.PROBLEM, "autovacuum is off", "turn it on"),
    (
        "settings",
        setting("default_transaction_isolation", "serializable"),
        QUEUE_FACTS,
        Level.PROBLEM,
        "default_transaction_isolation is serializable",
        "read committed",
    ),
    (
        "settings",
        setting("default_transaction_read_only", "on"),
        QUEUE_FACTS,
        Level.PROBLEM,
        "default_transaction_read_only is on",
        "read write",
    ),
    *(
        ("settings", setting(name, value), QUEUE_FACTS, Level.WARNING, f"{name} is {value}", "at least")
        for name, value in [
            ("statement_timeout", "999 ms"),
            ("transaction_timeout", "1 ms"),
            ("lock_timeout", "99 ms"),
        ]
    ),
    ("settings", setting("fsync", "off"), QUEUE_FACTS, Level.WARNING, "fsync is off", "except for tests"),
    ("settings", setting("synchronous_commit", "off"), QUEUE_FACTS, Level.WARNING, "may lose", "leave it on"),
    (
        "settings",
        setting("idle_in_transaction_session_timeout", "0 ms"),
        QUEUE_FACTS,
        Level.NOTE,
        "stays open indefinitely",
        "5min",
    ),
    ("connections", server(connections=85), QUEUE_FACTS, Level.WARNING, "85 of 100", "PgBouncer"),
    ("connections", server(connections=97), QUEUE_FACTS, Level.PROBLEM, "97 of 100", "max_connections"),
    (
        "transactions",
        blocked_by(600),
        QUEUE_FACTS,
        Level.WARNING,
        "open for 10m",
        "pg_terminate_backend(123)",
    ),
    (
        "transactions",
        blocked_by(7200),
        QUEUE_FACTS,
        Level.PROBLEM,
        "open for 2h",
        "pg_terminate_backend(123)",
    ),
    (
        "transactions",
        blocked_by(600, "prepared transaction"),
        QUEUE_FACTS,
        Level.WARNING,
        "prepared transaction '123'",
        "rollback prepared '123'",
    ),
    (
        "transactions",
        blocked_by(None),
        QUEUE_FACTS,
        Level.WARNING,
        "no active reader",
        "pg_drop_replication_slot('123')",
    ),
    (
        "transactions",
        server(sees_all_sessions=False),
        QUEUE_FACTS,
        Level.NOTE,
        "cannot see",
        "pg_read_all_stats",
    ),
    (
        "dead rows",
        replace(HEALTHY, tables=(TableFacts("turn", 1, 10, 1_000_000, None),)),
        QUEUE_FACTS,
        Level.WARNING,
        "turn: 1,000,000 dead of 1,000,010 rows, never vacuumed",
        "end old transactions",
    ),
    (
        "workers",
        OVERDUE,
        queue_facts(leased=0, sleepers=0),
        Level.PROBLEM,
        "no worker dequeues",
        "lonnymq work",
    ),
    (
        "workers",
        OVERDUE,
        fleet(process("a"), leased=0, sleepers=0),
        Level.PROBLEM,
        "no worker dequeues them, although 1 process reported a moment ago",
        "lonnymq workers",
    ),
    (
        "workers",
        OVERDUE,
        fleet(process("a", WorkerState.DRAINING), leased=0, sleepers=0),
        Level.PROBLEM,
        "messages are due, but all workers are draining (1 process)",
        "start one",
    ),
    (
        "workers",
        HEALTHY,
        fleet(process("a", WorkerState.DRAINING), process("b", WorkerState.DRAINING), sleepers=0),
        Level.WARNING,
        "all workers are draining (2 processes): nobody takes new messages",
        "start workers",
    ),
    (
        "workers",
        HEALTHY,
        queue_facts(leased=0, sleepers=0),
        Level.NOTE,
        "no worker reports itself, sleeps or holds a message",
        "lonnymq work",
    ),
    (
        "workers",
        HEALTHY,
        fleet(process("a"), process("web:7", WorkerState.GONE)),
        Level.WARNING,
        "web:7 has not reported for 2m; it held 2 messages",
        "its log",
    ),
    (
        "workers",
        HEALTHY,
        fleet(process("a"), process("b", version="1.1"), process("c", WorkerState.GONE, "0.9")),
        Level.NOTE,
        "different versions of lonnymq: 1.0 (1), 1.1 (1)",
        "restart",
    ),
    ("workers", HEALTHY, queue_facts(expired=2), Level.WARNING, "2 of 2 leases expired", "start one"),
    ("workers", HEALTHY, queue_facts(unfolded_wakes=200_000), Level.WARNING, "200,000 wakes", "lonnymq top"),
    ("dead letters", HEALTHY, queue_facts(dead=3), Level.NOTE, "3 dead letters", "lonnymq dead list"),
    (
        "history",
        HEALTHY,
        replace(queue_facts(history=HistoryMode.FULL, history_overflow=7), partitions=[DAY]),
        Level.WARNING,
        "7 rows in overflow",
        "history prepare",
    ),
    (
        "history",
        HEALTHY,
        replace(
            queue_facts(history=HistoryMode.FULL), partitions=[DAY, DAY, replace(DAY, is_attached=False)]
        ),
        Level.WARNING,
        "interrupted",
        "history prune",
    ),
    ("channels", OVERDUE, QUEUE_FACTS, Level.WARNING, "'acme' is ready: 5 waiting", "channel explain acme"),
    (
        "channels",
        replace(OVERDUE, channels=(OverdueChannel("acme", "paused", 5, 0, 120.0),)),
        QUEUE_FACTS,
        Level.NOTE,
        "'acme' is paused",
        "channel resume acme",
    ),
    (
        "check",
        HEALTHY,
        replace(QUEUE_FACTS, problems=[Problem("two turns", "acme", "2 turns", False)]),
        Level.PROBLEM,
        "two turns (channel 'acme')",
        "lonnymq repair",
    ),
]


@pytest.mark.parametrize(
    ("subject", "facts", "queue", "level", "detail", "advice"), PROBLEMS, ids=lambda value: str(value)[:30]
)
def test_each_problem_is_found_with_advice(
    subject: str, facts: Examination, queue: QueueFacts, level: Level, detail: str, advice: str
) -> None:
    found = [one for one in findings(facts, queue, NOW) if one.subject == subject and one.level is level]
    assert [one for one in found if detail in one.detail and advice in one.advice], found


def test_a_healthy_queue_has_no_findings_but_ok() -> None:
    found = list(findings(HEALTHY, fleet(process("a"), process("b")), NOW))
    assert {one.level for one in found} == {Level.OK}
    assert "2 processes with 2 of 8 slots busy; 2 messages leased, 1 worker asleep" in {
        one.detail for one in found
    }
    assert {one.subject for one in found} >= {"server", "schema", "privileges", "settings", "transactions"}


def test_bad_defaults_of_the_database_are_found(dsn: str, connect: Connect) -> None:
    defaults = {
        "default_transaction_isolation": "serializable",
        "default_transaction_read_only": "on",
        "statement_timeout": "900",
        "lock_timeout": "50",
    }
    admin, database = connect(), sql.Identifier(str(conninfo.conninfo_to_dict(dsn)["dbname"]))
    # The doctor's own sessions override these defaults.
    for name, value in defaults.items():
        statement = sql.SQL("alter database {} set {} = {}")
        admin.execute(statement.format(database, sql.Identifier(name), sql.Literal(value)))
    result = runner(dsn)("doctor")
    admin.execute(sql.SQL("alter database {} reset all").format(database))
    assert result.code == CommandExit.NO
    for name in defaults:
        assert f"{name} is" in result.out


def test_only_the_first_findings_of_a_kind_are_listed() -> None:
    many = replace(
        HEALTHY,
        channels=tuple(OverdueChannel(f"c{n}", "ready", 1, 0, 99.0) for n in range(50)),
        vacuum_blockers=tuple(
            VacuumBlocker("transaction", str(n), "a", "", None, 600, "") for n in range(50)
        ),
        leases=tuple(LongLease(n, None, None, 7200.0) for n in range(50)),
    )
    queue = replace(
        fleet(*[process(f"w{n}", WorkerState.GONE) for n in range(50)]),
        problems=[Problem("x", None, "y", False)] * 50,
    )
    for subject in ("channels", "transactions", "check", "leases", "workers"):
        found = [
            one for one in findings(many, queue, NOW) if one.subject == subject and one.level is not Level.OK
        ]
        assert len(found) == 6
        assert "and 45 more" in found[-1].detail


def test_the_doctor_examines_a_real_queue(lonnymq: Run, queue: Queue, connect: Connect) -> None:
    # Test servers run without fsync, which is a warning.
    shown = lonnymq("doctor")
    assert shown.code == 0
    assert "fsync is off" in shown.out
    assert lonnymq("doctor", "--strict").code == CommandExit.NO
    queue.enqueue("acme", 1)
    connect().execute("update message set created_at = created_at - 300000, dequeue_at = dequeue_at - 300000")
    unhealthy = lonnymq("doctor", "--quick")
    assert unhealthy.code == CommandExit.NO
    assert "messages are due, but no worker dequeues them" in unhealthy.out
    assert "'acme' is ready: 1 waiting, none released for 5m" in unhealthy.out
    assert "turns, leases, wakes" not in unhealthy.out
    as_json = lonnymq("doctor", "--json")
    assert as_json.code == CommandExit.NO
    assert '"is_healthy": false' in as_json.out


def test_the_doctor_names_messages_that_are_leased_for_hours(
    lonnymq: Run, queue: Queue, connect: Connect
) -> None:
    for channel in ("fresh", "hanging", "expired"):
        queue.enqueue(channel, 1)
    held = {one.channel: one.id for one in queue.dequeue(3, lease_s=60, worker="host:123")}
    assert "has been leased for" not in lonnymq("doctor").out
    # Leased three hours ago: one is kept by heartbeats, the other has expired.
    for channel, unlock_s in (("hanging", 60), ("expired", -60)):
        connect().execute(
            "update lease set leased_at = leased_at - 3 * 3600000000::bigint,"
            " unlock_at = unlock_at + (%s - 60) * 1000000::bigint where message_id = %s",
            (unlock_s, held[channel]),
        )
    shown = lonnymq("doctor").out
    assert f"message {held['hanging']} of 'hanging' has been leased for 3h by host:123" in shown
    assert "if its handler hangs, end that worker" in shown
    assert shown.count("has been leased for") == 1
    assert lonnymq("doctor", "--strict").code == CommandExit.NO


def test_the_doctor_reports_objects_of_other_roles_and_never_calls_them(
    lonnymq: Run, connect: Connect
) -> None:
    owner, role = connect(), f"lonnymq_{uuid.uuid4().hex[:8]}"
    assert ", a superuser" in lonnymq("doctor").out
    owner.execute("select message_create('a', 'x'); select message_dequeue()")
    owner.execute(f"create role {role}; grant create, usage on schema lonnymq to {role}".encode())
    try:
        owner.execute(
            f"""set role {role};
            create table lonnymq.caught (by text); grant insert on lonnymq.caught to public;
            create function lonnymq.catch(numeric, integer) returns numeric language plpgsql as
            $$ begin insert into lonnymq.caught values (current_user); return 1; end $$;
            create operator lonnymq.* (function = lonnymq.catch, leftarg = numeric, rightarg = integer);
            reset role""".encode()
        )
        shown = lonnymq("doctor")
        assert shown.code == CommandExit.NO
        assert f"other roles may create objects in the schema: {role}" in shown.out
        assert "the schema holds" in shown.out
        assert f"of {role}" in shown.out
        # Neither its status nor its check: those might call the planted operator.
        assert " asleep" not in shown.out
        assert "turns, leases, wakes" not in shown.out
        assert owner.execute("select * from lonnymq.caught").fetchall() == []
        owner.execute("select lonnymq.queue_pulse()")
        assert owner.execute("select * from lonnymq.caught").fetchall() != [], (
            "the planted operator is not called"
        )
    finally:
        owner.execute(f"drop owned by {role} cascade; drop role {role}".encode())


def test_the_doctor_reports_a_missing_queue_and_missing_privileges(
    database: Database, dsn: str, connect: Connect
) -> None:
    missing = runner(database(is_empty=True))("doctor")
    assert missing.code == CommandExit.NO
    assert "there is no queue 'lonnymq' in this database" in missing.out
    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner = connect()
    owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(role)))
    run = runner(conninfo.make_conninfo(dsn, user=role, password="x"))
    try:
        assert "this role has no privileges on the queue" in run("doctor").out
        for kind, may in {
            "reader": "inspect the queue",
            "producer": "create messages, inspect the queue",
        }.items():
            owner.execute("select queue_grant(%s, %s)", (role, kind))
            shown = run("doctor")
            assert f"this role may {may}\n" in shown.out
            assert "this role may not inspect the queue's invariants" in shown.out
            assert shown.code == 0
        owner.execute("select queue_revoke(%s), queue_grant(%s, 'worker')", (role, role))
        shown = run("doctor")
        assert "this role may not inspect workers, history, channels, the queue's invariants" in shown.out
        # Connections of other roles are counted although their sessions are hidden.
        assert "1 of" not in shown.out
    finally:
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
