"""What a tenant tries in order to hold up others: locks, transactions, settings, objects of its own."""

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login, Tenant
from tests.sql.session import Session

# All at once; each role may set them.
SETTINGS = (
    *("default_transaction_isolation = serializable", "default_transaction_deferrable = on"),
    *("transform_null_equals = on", "quote_all_identifiers = on", "array_nulls = off"),
    *("backslash_quote = off", "standard_conforming_strings = off", "xmlbinary = hex"),
    *("plpgsql.extra_errors = 'all'", "plpgsql.check_asserts = off", "plpgsql.print_strict_params = on"),
    *("enable_partition_pruning = off", "enable_indexscan = off", "enable_tidscan = off"),
    *("join_collapse_limit = 1", "from_collapse_limit = 1", "geqo_threshold = 2"),
    *("DateStyle = German", "IntervalStyle = sql_standard", "TimeZone = 'Pacific/Kiritimati'"),
    *("bytea_output = escape", "extra_float_digits = -15", "work_mem = '64kB'"),
    *("synchronous_commit = off", "jit_above_cost = 0", "constraint_exclusion = on", "row_security = off"),
    *("debug_parallel_query = regress", "force_parallel_mode = regress", "search_path = ''"),
    *("idle_in_transaction_session_timeout = 1000", "default_tablespace = pg_global", "lock_timeout = 1"),
)  # fmt: skip


def test_settings_of_a_session_change_nothing_for_others(tenant: Tenant, queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    acme, other = tenant("acme", prefix="acme/", max_channels=2), tenant("other")
    foreign = other.ask("select message_uuid from tenant_create('other', 'x')")
    applied = 0
    for setting in SETTINGS:
        try:
            acme.run(f"set {setting}")
        except psycopg.errors.UndefinedObject:
            # Another version of PostgreSQL.
            continue
        applied += 1
    assert applied >= len(SETTINGS) - 1
    create = "select outcome from lonnymq.tenant_create({}, 'x', p_key => {})"
    assert acme.ask(create.format("'acme'", "null")) == "created"
    for channel in ("null", "'other'", "'acme2'"):
        with pytest.raises(psycopg.Error) as raised:
            acme.run(create.format(channel, "'k'"))
        assert raised.value.sqlstate in ("42501", "LQ001")
    # What counts messages needs READ COMMITTED.
    for call in ("tenant_create('acme/a', 'x')", "tenant_redrive_channel('acme')"):
        with pytest.raises(psycopg.Error, match=r"(?i)read committed"):
            acme.run(f"select lonnymq.{call}")
    acme.run("begin isolation level read committed")
    assert acme.rows("select outcome from lonnymq.tenant_create_many('{acme/a,acme}', '{x,x}')") == [
        ("created",),
        ("created",),
    ]
    assert acme.rows("select outcome from lonnymq.tenant_cancel(%s)", [foreign]) == [("unknown",)]
    acme.run("commit")
    assert len(acme.rows("select * from lonnymq.tenant_status")) == 2
    assert len(queue.drain()) == 4
    assert {row[0] for row in queue.rows("select channel from history")} == {"acme", "acme/a", "other"}


def test_a_serializable_transaction_makes_no_other_one_fail(tenant: Tenant, queue: Session) -> None:
    queue.run("""select queue_set('{"default_policy": {"max_concurrency": 5}}')""")
    acme, other = tenant("acme"), tenant("other")
    for level in ("repeatable read", "serializable"):
        acme.run(f"begin isolation level {level}")
        acme.run("select * from tenant_status")
        acme.run("select tenant_create('acme', 'x', p_key => 'k')")
        for session in (queue, other):
            session.run("set default_transaction_isolation = 'serializable'")
        other.run("select tenant_create('other', 'x')")
        queue.run("select message_create('acme', 'x')")
        for session in (queue, other):
            session.run("reset default_transaction_isolation")
        assert len(queue.drain()) == 2
        acme.run("commit")
        assert len(queue.drain()) == 1


def test_advisory_locks_hold_up_no_call(tenant: Tenant, login: Login, queue: Session) -> None:
    """Every role sees which advisory locks are held, those of workers too, and can ask for the same."""
    from tests.sql.test_tenant_attacks import SECRET, WORKER

    worker = login("worker")
    pid = worker.connection.info.backend_pid
    assert worker.ask("select worker_register(%s, %s, %s)", WORKER, SECRET, pid) == "registered"
    acme = tenant("acme")
    acme.run("select pg_advisory_lock(n), pg_advisory_lock(n, 0) from generate_series(-300, 300) n")
    acme.run("select pg_advisory_lock(oid::bigint), pg_advisory_lock(oid::integer, 0) from pg_class")
    held = (
        "select l.classid::bigint << 32 | l.objid::bigint from pg_locks l"
        " where l.locktype = 'advisory' and l.pid = %s"
    )
    (number,) = acme.rows(held, pid)[0]
    assert acme.ask("select pg_try_advisory_lock(%s)", number) is False
    assert acme.ask("select pg_try_advisory_lock_shared(%s)", number) is False
    for session in (queue, worker):
        session.run("set lock_timeout = '50ms'")
    acme.run("begin; select tenant_create('acme', 'x')")
    for call in (
        "message_create('new', 'x', p_key => 'k')",
        "message_create_many('{a,b,c}', '{x,x,x}')",
        "message_dequeue(2)",
        "channel_set('unused', '{\"max_size\": 5}')",
        "channel_delete('unused')",
        "cron_set('c', '* * * * *', 'a', 'x')",
        "sleeper_register('s', 1000)",
        "worker_watch()",
        "history_prepare(1)",
        "queue_check(true)",
        'queue_set(\'{"default_policy": {"max_concurrency": 5}}\')',
    ):
        queue.run(f"select * from {call}")
    # When the worker's session ends, the tenant gets its lock, and does not become the worker by that.
    worker.connection.close()
    acme.run("rollback")
    acme.run("select pg_advisory_lock(%s)", number)
    present = "select count(*) from worker_sessions()"
    assert queue.ask(present) == 0


def test_a_tenant_can_end_no_session_of_others(tenant: Tenant, login: Login, queue: Session) -> None:
    acme, other, worker = tenant("acme"), tenant("other"), login("worker")
    for session in (other, worker, queue):
        pid = session.connection.info.backend_pid
        for function in ("pg_cancel_backend", "pg_terminate_backend"):
            with pytest.raises(DENIED):
                acme.run(f"select {function}(%s)", pid)
        assert session.ask("select 1") == 1


def test_only_a_key_of_a_tenants_own_channel_can_be_waited_for(tenant: Tenant, queue: Session) -> None:
    """As the how-to says: whoever creates with that key in that channel waits for its open transaction."""
    acme = tenant("acme", prefix="acme/")
    queue.create("acme", key="k")
    queue.bury(queue.take(1))
    queue.run("select cron_set('c', '* * * * *', 'acme', 'x', p_mark_at => '2026-01-01 00:00+00')")
    tick = (
        "cron_tick('c', '2026-01-01 00:00+00', '2026-01-01 00:01+00', '{2026-01-01 00:01+00}',"
        " '2026-01-01 00:02+00')"
    )
    acme.run("begin")
    for key in ("k", "cron:c:2026-01-01T00:01:00Z"):
        acme.run("select tenant_create('acme', 'x', p_key => %s)", key)
    queue.run("set lock_timeout = '50ms'")
    for call in (
        "message_create('acme', 'x', p_key => 'k')",
        "dead_redrive(array(select message_id from dead))",
        tick,
    ):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            queue.run(f"select * from {call}")
    queue.create("other", key="k")
    queue.create("acme", key="l")
    queue.create("acme")
    assert len(queue.take(9)) == 3
    acme.run("rollback")
    assert queue.rows(f"select * from {tick}") == [("ticked", 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "create temp table t (c {})",
        "create temp table t (c {}[])",
        "create temp table t of {}",
        "create domain public.d as {}",
        "create type public.c as (c {})",
        "create function public.f({}) returns integer language sql as 'select 1'",
        "create function public.f() returns {} language sql as 'select null'",
        "create cast ({} as text) with inout",
    ],
)
def test_nothing_can_depend_on_the_queues_types(tenant: Tenant, queue: Session, statement: str) -> None:
    """While a table has such a column, PostgreSQL refuses some changes that a migration makes."""
    queue.run("grant create, usage on schema public to public")
    queue.run("select history_prepare(1)")
    acme = tenant("acme")
    types = queue.rows(
        "select t.oid::regtype::text from pg_type t"
        " where t.typnamespace = 'lonnymq'::regnamespace and t.typtype <> 'b'"
    )
    assert ("turn_allocation",) in types
    assert ("message",) in types
    for (name,) in types:
        acme.run("begin")
        with pytest.raises(psycopg.Error) as raised:
            acme.run(statement.format(f"lonnymq.{name}"))
        assert raised.value.sqlstate in (DENIED.sqlstate, "42809", "0A000", "42P16"), name
        acme.run("rollback")


def test_operators_and_casts_of_a_tenant_are_not_used_by_the_queue(tenant: Tenant, queue: Session) -> None:
    queue.run("grant create, usage on schema public to public")
    acme = tenant("acme", prefix="acme/")
    own = acme.ask("select message_uuid from tenant_create('acme', 'x')")
    types = (
        *(("text", "text"), ("bigint", "bigint"), ("bigint", "integer"), ("oid", "oid"), ("jsonb", "text")),
        *(("regrole", "oid"), ("uuid", "uuid"), ("bytea", "bytea"), ("integer", "integer"), ("name", "text")),
    )
    for number, (left, right) in enumerate(types):
        acme.run(
            f"create function public.caught{number}({left}, {right}) returns boolean language plpgsql"
            " as $$ begin raise exception 'caught'; end $$"
        )
        for name in ("=", "<>", "<", "<=", ">", ">=", "||", "->>", "?", "#", "-", "+", "@>", "~", "!~"):
            acme.run(
                f"create operator public.{name} (leftarg = {left}, rightarg = {right},"
                f" function = public.caught{number})"
            )
    acme.run("create type public.disguise as enum ('victim', 'acme')")
    acme.run(
        "create function public.unmask(public.disguise) returns text language sql as $$ select 'victim' $$"
    )
    acme.run("create cast (public.disguise as text) with function public.unmask as implicit")
    acme.run("set search_path = public, pg_catalog, lonnymq")
    with pytest.raises(psycopg.Error, match="caught"):
        acme.run("select 'a'::text || 'b'::text")
    with pytest.raises(DENIED, match="victim"):
        acme.run("select lonnymq.tenant_create('acme'::public.disguise, 'x')")
    for call in (
        "tenant_create('acme/a', 'x', p_key => 'k', p_headers => '{\"h\": \"x\"}')",
        "tenant_create_many('{acme/a,acme}', '{x,x}', p_keys => '{k,l}')",
        "tenant_peek('acme')",
        "tenant_channels()",
        "tenant_dead_list()",
        "tenant_history_list('acme')",
        "tenant_redrive_channel('acme')",
        f"tenant_show('{{{own}}}')",
        f"tenant_redrive('{{{own}}}')",
        f"tenant_cancel('{{{own}}}')",
        "tenant_cancel_key('acme/a', 'k')",
    ):
        acme.run(f"select * from lonnymq.{call}")
