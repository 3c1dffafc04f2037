"""doctor: healthy queues are told so; each illness is found and says what to do."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import HistoryMode, HistoryPartition, Problem, Queue, QueueStatus, SchemaState, SchemaStatus
from lonnymq.cli.doctor.command import findings
from lonnymq.cli.doctor.finding import Level, Vitals
from lonnymq.cli.exits import Exit
from lonnymq.schema.examine import (
    Examination,
    Holder,
    LongLease,
    OverdueChannel,
    Privileges,
    ServerFacts,
    TableFacts,
)
from lonnymq.schema.trust import Trust
from tests.cli.conftest import Run, in_process
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
    ("message_create", "message_dequeue", "channel_set", "queue_status", "queue_check"),
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
STATUS = QueueStatus(5, 10, 2, 0, 0, 3, 1, HistoryMode.OFF, 0, None, 1)
VITALS = Vitals(STATUS, [], [])


def server(**changes: Any) -> Examination:
    return replace(HEALTHY, server=replace(SERVER, **changes))


def setting(name: str, value: str) -> Examination:
    return server(settings={**SETTINGS, name: value})


def state(state: SchemaState, version: int = 1) -> Examination:
    return replace(HEALTHY, schema=SchemaStatus("lonnymq", state, version, 1))


def trust(**changes: Any) -> Examination:
    return replace(HEALTHY, trust=replace(TRUST, **changes))


def holder(age_s: float | None, kind: str = "transaction") -> Examination:
    return replace(HEALTHY, holders=(Holder(kind, "123", "ann", "psql", "idle in transaction", age_s, "x"),))


def vitals(**changes: Any) -> Vitals:
    return replace(VITALS, status=replace(STATUS, **changes))


OVERDUE = replace(HEALTHY, channels=(OverdueChannel("acme", "ready", 5, 0, 120.0),))
DAY = HistoryPartition("history_20300101", 0, False, True, False)

ILL: list[tuple[str, Examination, Vitals, Level, str, str]] = [
    ("server", server(version_number=130001), VITALS, Level.PROBLEM, "PostgreSQL", "14 or newer"),
    ("server", server(is_standby=True), VITALS, Level.PROBLEM, "standby", "the primary"),
    ("clock", server(clock=NOW + timedelta(minutes=3)), VITALS, Level.WARNING, "3m ahead of", "NTP"),
    ("schema", state(SchemaState.MISSING, 0), VITALS, Level.PROBLEM, "no queue", "lonnymq install"),
    ("schema", state(SchemaState.OUTDATED), VITALS, Level.PROBLEM, "another release", "lonnymq migrate"),
    ("schema", state(SchemaState.NEWER, 2), VITALS, Level.NOTE, "newer", "install a newer"),
    ("schema", state(SchemaState.INCOMPATIBLE, 9), VITALS, Level.PROBLEM, "newer", "install a newer"),
    (
        "not checked",
        replace(HEALTHY, trust=replace(TRUST, role_is_superuser=True)),
        VITALS,
        Level.NOTE,
        "runs code of 'lonny', and this role is a superuser",
        "-c role=lonny",
    ),
    (
        "privileges",
        replace(HEALTHY, privileges=replace(MAY_ALL, functions=())),
        VITALS,
        Level.PROBLEM,
        "may do nothing",
        "lonnymq grant ann",
    ),
    (
        "owner",
        trust(owner="postgres", owner_is_superuser=True),
        VITALS,
        Level.WARNING,
        "'postgres', a superuser",
        "least-privilege",
    ),
    (
        "owner",
        trust(creators=("PUBLIC", "Bob")),
        VITALS,
        Level.PROBLEM,
        "PUBLIC, Bob; what they create",
        'revoke create on schema "lonnymq" from PUBLIC, "Bob"',
    ),
    (
        "owner",
        trust(strangers=("function lonnymq.to_char(date,text) of bob",)),
        VITALS,
        Level.PROBLEM,
        "holds function lonnymq.to_char(date,text) of bob",
        "drop what you do not know",
    ),
    ("settings", setting("autovacuum", "off"), VITALS, Level.PROBLEM, "autovacuum is off", "turn it on"),
    (
        "settings",
        setting("default_transaction_isolation", "serializable"),
        VITALS,
        Level.PROBLEM,
        "default_transaction_isolation is serializable",
        "read committed",
    ),
    (
        "settings",
        setting("default_transaction_read_only", "on"),
        VITALS,
        Level.PROBLEM,
        "default_transaction_read_only is on",
        "read write",
    ),
    *(
        ("settings", setting(name, value), VITALS, Level.WARNING, f"{name} is {value}", "at least")
        for name, value in [
            ("statement_timeout", "999 ms"),
            ("transaction_timeout", "1 ms"),
            ("lock_timeout", "99 ms"),
        ]
    ),
    ("settings", setting("fsync", "off"), VITALS, Level.WARNING, "fsync is off", "except for tests"),
    ("settings", setting("synchronous_commit", "off"), VITALS, Level.WARNING, "may lose", "leave it on"),
    (
        "settings",
        setting("idle_in_transaction_session_timeout", "0 ms"),
        VITALS,
        Level.NOTE,
        "stays open indefinitely",
        "5min",
    ),
    ("connections", server(connections=85), VITALS, Level.WARNING, "85 of 100", "PgBouncer"),
    ("connections", server(connections=97), VITALS, Level.PROBLEM, "97 of 100", "max_connections"),
    ("transactions", holder(600), VITALS, Level.WARNING, "open for 10m", "pg_terminate_backend(123)"),
    ("transactions", holder(7200), VITALS, Level.PROBLEM, "open for 2h", "pg_terminate_backend(123)"),
    (
        "transactions",
        holder(600, "prepared transaction"),
        VITALS,
        Level.WARNING,
        "prepared transaction '123'",
        "rollback prepared '123'",
    ),
    (
        "transactions",
        holder(None),
        VITALS,
        Level.WARNING,
        "read by nobody",
        "pg_drop_replication_slot('123')",
    ),
    (
        "transactions",
        server(sees_all_sessions=False),
        VITALS,
        Level.NOTE,
        "does not see",
        "pg_read_all_stats",
    ),
    (
        "dead rows",
        replace(HEALTHY, tables=(TableFacts("turn", 1, 10, 1_000_000, None),)),
        VITALS,
        Level.WARNING,
        "turn: 1,000,000 dead of 1,000,010, never vacuumed",
        "end old transactions",
    ),
    ("workers", OVERDUE, vitals(leased=0, sleepers=0), Level.PROBLEM, "no worker asks", "lonnymq work"),
    ("workers", HEALTHY, vitals(expired=2), Level.WARNING, "2 of 2 leases expired", "start one"),
    ("workers", HEALTHY, vitals(unfolded_wakes=200_000), Level.WARNING, "200,000 wakes", "lonnymq top"),
    ("dead letters", HEALTHY, vitals(dead=3), Level.NOTE, "3 dead letters", "lonnymq dead list"),
    (
        "history",
        HEALTHY,
        replace(vitals(history=HistoryMode.FULL, history_overflow=7), partitions=[DAY]),
        Level.WARNING,
        "7 rows in overflow",
        "history prepare",
    ),
    (
        "history",
        HEALTHY,
        replace(vitals(history=HistoryMode.FULL), partitions=[DAY, DAY, replace(DAY, is_attached=False)]),
        Level.WARNING,
        "cut off",
        "history prune",
    ),
    ("channels", OVERDUE, VITALS, Level.WARNING, "'acme' is ready: 5 waiting", "channel explain acme"),
    (
        "channels",
        replace(OVERDUE, channels=(OverdueChannel("acme", "paused", 5, 0, 120.0),)),
        VITALS,
        Level.NOTE,
        "'acme' is paused",
        "channel resume acme",
    ),
    (
        "check",
        HEALTHY,
        replace(VITALS, problems=[Problem("two turns", "acme", "2 turns", False)]),
        Level.PROBLEM,
        "two turns (channel 'acme')",
        "lonnymq repair",
    ),
]


@pytest.mark.parametrize(
    ("subject", "facts", "said", "level", "detail", "advice"), ILL, ids=lambda value: str(value)[:30]
)
def test_each_illness_is_found_and_says_what_to_do(
    subject: str, facts: Examination, said: Vitals, level: Level, detail: str, advice: str
) -> None:
    found = [one for one in findings(facts, said, NOW) if one.subject == subject and one.level is level]
    assert [one for one in found if detail in one.detail and advice in one.advice], found


def test_a_healthy_queue_has_nothing_but_good_news() -> None:
    found = list(findings(HEALTHY, VITALS, NOW))
    assert {one.level for one in found} == {Level.OK}
    assert {one.subject for one in found} >= {"server", "schema", "privileges", "settings", "transactions"}


def test_defaults_of_a_database_are_found_although_our_own_sessions_correct_them(
    dsn: str, connect: Connect
) -> None:
    defaults = {
        "default_transaction_isolation": "serializable",
        "default_transaction_read_only": "on",
        "statement_timeout": "900",
        "lock_timeout": "50",
    }
    admin, database = connect(), sql.Identifier(str(conninfo.conninfo_to_dict(dsn)["dbname"]))
    for name, value in defaults.items():
        statement = sql.SQL("alter database {} set {} = {}")
        admin.execute(statement.format(database, sql.Identifier(name), sql.Literal(value)))
    ended = in_process(dsn)("doctor")
    admin.execute(sql.SQL("alter database {} reset all").format(database))
    assert ended.code == Exit.NO
    for name in defaults:
        assert f"{name} is" in ended.out


def test_many_of_a_kind_are_counted_not_listed() -> None:
    many = replace(
        HEALTHY,
        channels=tuple(OverdueChannel(f"c{n}", "ready", 1, 0, 99.0) for n in range(50)),
        holders=tuple(Holder("transaction", str(n), "a", "", None, 600, "") for n in range(50)),
        leases=tuple(LongLease(n, None, None, 7200.0) for n in range(50)),
    )
    told = replace(VITALS, problems=[Problem("x", None, "y", False)] * 50)
    for subject in ("channels", "transactions", "check", "long work"):
        found = [one for one in findings(many, told, NOW) if one.subject == subject]
        assert len(found) == 6
        assert "and 45 more" in found[-1].detail


def test_the_doctor_looks_at_a_real_queue(lonnymq: Run, queue: Queue, connect: Connect) -> None:
    # Servers of tests run without fsync, which is a warning.
    shown = lonnymq("doctor")
    assert shown.code == 0
    assert "fsync is off" in shown.out
    assert lonnymq("doctor", "--strict").code == Exit.NO
    queue.enqueue("acme", 1)
    connect().execute("update message set created_at = created_at - 300000, dequeue_at = dequeue_at - 300000")
    ill = lonnymq("doctor", "--quick")
    assert ill.code == Exit.NO
    assert "messages are due and no worker asks for them" in ill.out
    assert "'acme' is ready: 1 waiting, none released for 5m" in ill.out
    assert "turns, leases, wakes" not in ill.out
    told = lonnymq("doctor", "--json")
    assert told.code == Exit.NO
    assert '"is_healthy": false' in told.out


def test_the_doctor_names_messages_that_are_worked_for_hours(
    lonnymq: Run, queue: Queue, connect: Connect
) -> None:
    for channel in ("fresh", "hanging", "expired"):
        queue.enqueue(channel, 1)
    held = {one.channel: one.id for one in queue.dequeue(3, lease_s=60, worker="host:123")}
    assert "long work" not in lonnymq("doctor").out
    # Three hours ago; its worker still sends heartbeats.
    for channel, unlock_s in (("hanging", 60), ("expired", -60)):
        connect().execute(
            "update lease set leased_at = leased_at - 3 * 3600000000::bigint,"
            " unlock_at = unlock_at + (%s - 60) * 1000000::bigint where message_id = %s",
            (unlock_s, held[channel]),
        )
    shown = lonnymq("doctor").out
    assert f"message {held['hanging']} of 'hanging' has been worked for 3h by host:123" in shown
    assert "if its handler hangs: end that worker" in shown
    assert shown.count("long work") == 1
    assert lonnymq("doctor", "--strict").code == Exit.NO


def test_the_doctor_warns_of_strangers_and_calls_nothing_of_theirs(lonnymq: Run, connect: Connect) -> None:
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
        assert shown.code == Exit.NO
        assert f"others may create in the schema: {role}" in shown.out
        assert "the schema holds" in shown.out
        assert f"of {role}" in shown.out
        # Neither its status nor its check: those would call whatever fits best.
        assert "workers asleep" not in shown.out
        assert "turns, leases, wakes" not in shown.out
        assert owner.execute("select * from lonnymq.caught").fetchall() == []
        owner.execute("select lonnymq.queue_status()")
        assert owner.execute("select * from lonnymq.caught").fetchall() != [], "the trap does not work"
    finally:
        owner.execute(f"drop owned by {role} cascade; drop role {role}".encode())


def test_the_doctor_sees_a_missing_queue_and_a_role_without_privileges(
    database: Database, dsn: str, connect: Connect
) -> None:
    missing = in_process(database(is_empty=True))("doctor")
    assert missing.code == Exit.NO
    assert "there is no queue 'lonnymq' in this database" in missing.out
    role = f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner = connect()
    owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(role)))
    run = in_process(conninfo.make_conninfo(dsn, user=role, password="x"))
    try:
        assert "this role may do nothing with the queue" in run("doctor").out
        for kind, may in {"reader": "look", "producer": "create messages, look"}.items():
            owner.execute("select queue_grant(%s, %s)", (role, kind))
            shown = run("doctor")
            assert f"this role may {may}\n" in shown.out
            assert "this role may not look at the queue's invariants" in shown.out
            assert shown.code == 0
        owner.execute("select queue_revoke(%s), queue_grant(%s, 'worker')", (role, role))
        shown = run("doctor")
        assert "this role may not look at workers, history, channels, the queue's invariants" in shown.out
        # Connections of other roles are counted all the same.
        assert "1 of" not in shown.out
    finally:
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
