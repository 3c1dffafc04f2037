"""What a tenant tries from SQL against the queue and against other tenants.

The objects of the schema are enumerated, so that a new one without protection fails here.
"""

import hashlib
import itertools
import json
import re
import uuid
from typing import Any

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login, Tenant, quoted, role_of
from tests.sql.session import Session

MAY_EXECUTE = {
    *("tenant_create", "tenant_create_many", "tenant_cancel", "tenant_cancel_key"),
    *("tenant_redrive", "tenant_redrive_channel"),
    *("tenant_show", "tenant_peek", "tenant_channels", "tenant_dead_list", "tenant_history_list"),
    *("to_epoch", "from_epoch"),
}
MAY_SELECT = {"tenant_status", "tenant_dead_letter", "tenant_history"}
# Ids begin here, so that an id that leaks is recognised, also within a text or in hexadecimal.
FIRST_ID = 7_340_000_000_001
LEAKED_ID = re.compile(r"73400000\d{5}|6acf8|victim|worker-7|a secret", re.IGNORECASE)

# What a worker says of itself: its name is that of its leases, and ends with the fingerprint of its secret.
SECRET = "a secret of 32 characters or more"
WORKER = f"worker-7:{hashlib.sha256(SECRET.encode()).hexdigest()[:16]}"
REPORT = f"""
    select worker_report('{WORKER}', '{SECRET}', 'host of the victim', 1, '1', '{{victim.task}}', 4, 0,
      false, 1, 1, array(select l.message_id from lease l limit 1), '{{victim}}', '{{1}}', false)
"""


@pytest.fixture
def victim(tenant: Tenant, queue: Session) -> dict[str, list[uuid.UUID]]:
    """Fill the queue of another tenant: waiting, leased, dead and finished messages; return their uuids.

    What operators and workers leave about it is filled, too: actions, a report of its worker, an exact count.
    """
    queue.run(f"alter sequence message_id_seq restart {FIRST_ID}")
    queue.run('select queue_set(\'{"history": "full"}\')')
    session = tenant("victim", prefix="victim/")
    made = [
        session.ask(
            "select message_uuid from tenant_create('victim', 'a secret', p_key => %s)", f"victim-{n}"
        )
        for n in range(6)
    ]
    queue.complete(queue.dequeue(1, worker=WORKER))
    queue.bury(queue.dequeue(2, worker=WORKER), "a secret error")
    queue.defer([queue.lease()], delay_ms=0, error="a secret error", state=b"a secret state")
    queue.dequeue(1, worker=WORKER)
    queue.set("victim", max_size=100)
    queue.run(REPORT)
    queue.run("select audit_record('a secret actor', 'channel_pause', 'victim', '{\"key\": \"a secret\"}')")
    queue.run("select queue_count()")
    return {"uuids": made}


def rows_of_the_victim(queue: Session) -> list[Any]:
    tables = (
        *("message where key like 'victim%'", "dead", "lease", "history", "channel", "tenant"),
        *("audit", "worker_process", "exact_count"),
    )
    return [queue.rows(f"select * from {table} order by 1") for table in tables]


def functions(queue: Session) -> list[tuple[str, str, list[str]]]:
    """Return each function of the schema: its name, its signature, and the types of its parameters."""
    return queue.rows(
        "select p.proname::text, p.oid::regprocedure::text, array(select format_type(t, null)"
        " from unnest(p.proargtypes::oid[]) with ordinality u(t, n) order by n)"
        " from pg_proc p where p.pronamespace = 'lonnymq'::regnamespace order by 2"
    )


# Every object of the schema.


def test_a_tenant_may_execute_its_functions_and_no_others(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    for name, signature, types in functions(queue):
        may = acme.ask("select has_function_privilege(%s::regprocedure, 'execute')", signature)
        assert may is (name in MAY_EXECUTE), signature
        if not may and types:
            # Not null: PostgreSQL computes a strict function of null without calling it.
            nulls = ", ".join(f"(select null::{kind})" for kind in types)
            with pytest.raises(DENIED, match="permission denied"):
                acme.run(f"select lonnymq.{name}({nulls})")


def test_a_tenant_may_read_its_views_and_nothing_else(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    queue.run("select history_prepare(2)")
    relations = queue.rows(
        "select c.relname::text, c.relkind::text from pg_class c"
        " where c.relnamespace = 'lonnymq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')"
    )
    assert {kind for _, kind in relations} == {"r", "p", "v", "S"}
    for name, kind in relations:
        statements = [f"update {name} set ctid = null", f"delete from {name}", f"truncate {name}"]
        statements += [f"insert into {name} default values", f"alter table {name} add x integer"]
        statements += [f"lock table {name} in row exclusive mode", f"drop table {name}"]
        statements += [f"create trigger t before insert on {name} execute function now()"]
        if name in MAY_SELECT:
            assert acme.rows(f"select * from {name} where false") == []
            statements += [
                f"select * from {name} for update",
                f"create rule r as on insert to {name} do nothing",
            ]
        else:
            statements += [f"select from {name}", f"lock table {name} in access share mode"]
            statements += [f"copy {name} to stdout", f"analyze {name}; select from {name}"]
            statements += [
                f"create temp table c (like {name} including all); insert into c select * from {name}"
            ]
        if kind == "S":
            statements = [f"select nextval('{name}')", f"select currval('{name}')", f"select from {name}"]
            statements += [f"select setval('{name}', 1)", f"alter sequence {name} restart"]
            assert acme.ask("select last_value from pg_sequences where sequencename = %s", name) is None
        for statement in statements:
            acme.run("begin")
            with pytest.raises(psycopg.Error):
                acme.run(statement)
            acme.run("rollback")
    columns = (
        "select count(*) from information_schema.column_privileges"
        " where table_schema = 'lonnymq' and not table_name = any(%s)"
    )
    assert acme.ask(columns, list(MAY_SELECT)) == 0


def test_every_function_for_tenants_hides_its_messages_and_checks_its_caller(queue: Session) -> None:
    rows = queue.rows(
        "select p.proname::text, p.prosecdef, coalesce(array_to_string(p.proconfig, ' '), '')"
        " from kind_rights() k join pg_proc p on p.proname = any(k.names)"
        " where p.pronamespace = 'lonnymq'::regnamespace and k.kind = 'tenant' and k.privilege = 'EXECUTE'"
    )
    assert {name for name, _, _ in rows} == MAY_EXECUTE
    for name, is_definer, settings in rows:
        assert "search_path=" in settings, name
        assert is_definer is name.startswith("tenant_"), name
        assert not is_definer or "client_min_messages=error" in settings, name


def test_every_view_for_tenants_reads_functions_only(tenant: Tenant, queue: Session) -> None:
    """EXPLAIN ANALYZE tells how many rows of others a view has passed over."""
    acme = tenant("acme")
    for view in MAY_SELECT:
        assert "security_barrier" in queue.ask(
            "select reloptions::text from pg_class where oid = %s::regclass", view
        )
        plan = json.dumps(
            acme.rows(f"explain (analyze, buffers, verbose, format json) select * from {view}")[0][0]
        )
        assert "Function Scan" in plan
        assert "Relation Name" not in plan


# Every function for tenants, with every argument that could hit another tenant.


def arguments(queue: Session, victim: dict[str, list[uuid.UUID]], ids: list[int]) -> dict[str, list[str]]:
    own = "'{" + ",".join(str(one) for one in victim["uuids"]) + "}'::uuid[]"
    forged = "array[" + ",".join(f"lpad(to_hex({one}), 32, '0')::uuid" for one in ids) + "]"
    return {
        "text": ["'victim'", "'victim/a'", "null", "'victim'' or true --'", "'%'", "'acme'"],
        "text[]": ["'{victim}'", "'{acme,victim/}'", "null", "'{{acme},{victim}}'"],
        "bytea": ["'x'"],
        "bytea[]": ["'{x}'", "'{x,y}'"],
        "bigint": ["null", "9007199254740991"],
        "bigint[]": ["null"],
        "integer": ["10"],
        "integer[]": ["null"],
        "jsonb": ["null"],
        "jsonb[]": ["null"],
        "uuid": ["null", f"'{victim['uuids'][1]}'::uuid"],
        "uuid[]": [own, forged],
        "timestamp with time zone": ["now()"],
    }


def test_no_call_of_a_tenant_touches_or_shows_another_one(
    tenant: Tenant, queue: Session, victim: dict[str, list[uuid.UUID]]
) -> None:
    acme = tenant("acme", prefix="acme/")
    ids = [one for (one,) in queue.rows("select message_id from dead union all select id from message")]
    before = rows_of_the_victim(queue)
    values = arguments(queue, victim, ids)
    calls = []
    for name, _, types in functions(queue):
        if name in MAY_EXECUTE:
            calls += [
                f"{name}({', '.join(chosen)})"
                for chosen in itertools.product(*(values[one] for one in types))
            ]
    assert len(calls) > 200
    seen = []
    for call in calls:
        acme.run("begin")
        try:
            seen.append((call, str(acme.rows(f"select * from {call}"))))
        except psycopg.Error as error:
            # What the caller wrote itself appears in errors.
            seen.append((call, str(error).replace("'victim", "")))
        acme.run("rollback")
    for view in MAY_SELECT:
        seen.append((view, str(acme.rows(f"select * from {view}"))))
    own = {str(one) for one in victim["uuids"]}
    for call, shown in seen:
        for echoed in own:
            shown = shown.replace(echoed, "")
        assert not LEAKED_ID.search(re.sub(r"LINE \d+:.*", "", shown, flags=re.DOTALL)), (call, shown)
    assert rows_of_the_victim(queue) == before


def test_no_answer_says_whether_anothers_channel_or_message_exists(
    tenant: Tenant, queue: Session, victim: dict[str, list[uuid.UUID]]
) -> None:
    acme = tenant("acme")
    calls = (
        "create(%s, 'x', p_key => 'victim-5')",
        "cancel_key(%s, 'victim-5')",
        "peek(%s)",
        "dead_list(%s)",
    )
    for call in (*calls, "redrive_channel(%s)", "history_list(%s)", "create_many(array[%s], '{x}')"):
        texts = set()
        for channel in ("victim", "nobody"):
            with pytest.raises(psycopg.Error) as raised:
                acme.run(f"select tenant_{call}", channel)
            assert raised.value.sqlstate == "42501"
            texts.add(str(raised.value).replace(channel, "CHANNEL"))
        assert len(texts) == 1, texts
    for call in ("cancel", "redrive"):
        answers = acme.rows(f"select outcome from tenant_{call}(%s)", [*victim["uuids"], uuid.uuid4()])
        assert answers == [("unknown",)] * 7
    assert acme.rows("select * from tenant_show(%s)", victim["uuids"]) == []
    # A key is free in every other channel.
    assert acme.ask("select outcome from tenant_create('acme', 'x', p_key => 'victim-5')") == "created"


def test_an_open_transaction_of_a_tenant_holds_up_no_operator(tenant: Tenant, queue: Session) -> None:
    """It has locked what it may lock: messages, dead letters and the right to the room in its channel."""
    queue.set("acme", max_size=9)
    acme = tenant("acme", prefix="acme/")
    made = [acme.ask("select message_uuid from tenant_create('acme', 'x')") for _ in range(3)]
    queue.bury(queue.dequeue(1))
    acme.run("begin")
    acme.run("select tenant_create('acme', 'x', p_key => 'k'), tenant_create('acme/new', 'x')")
    assert acme.rows("select outcome from tenant_redrive(%s)", made[:1]) == [("redriven",)]
    assert acme.rows("select outcome from tenant_cancel(%s)", made[1:2]) == [("cancelled",)]
    ids = "array[message_of_uuid('{}'), message_of_uuid('{}')]".format(*made[:2])
    queue.run("set lock_timeout = '50ms'")
    for call in (
        f"message_run_now({ids})",
        f"message_cancel({ids})",
        f"dead_redrive({ids})",
        f"dead_purge({ids})",
        "channel_set('acme', '{\"max_size\": 5}')",
        "channel_delete('acme/new')",
        "channel_page()",
        'queue_set(\'{"history": "full"}\')',
        "queue_count()",
        "queue_check(true)",
        "queue_pulse()",
        "audit_record('ann', 'channel_set', 'acme')",
        "worker_drain('nobody')",
        "message_dequeue(9)",
        "history_prepare(1)",
    ):
        queue.rows(f"select * from {call}")
    queue.run(REPORT)
    acme.run("commit")


# Identities.


def test_uuids_tell_nothing_about_order_or_number(tenant: Tenant, queue: Session) -> None:
    """Bits of consecutive ids are half ones, also compared with the previous uuid."""
    acme = tenant("acme")
    rows = acme.rows(
        "select message_uuid from tenant_create_many(array_fill('acme'::text, '{2000}'),"
        " array_fill('x'::bytea, '{2000}'))"
    )
    numbers = [one.int for (one,) in rows]
    assert (
        len({number >> 64 for number in numbers}) == len({number & (2**64 - 1) for number in numbers}) == 2000
    )
    for values in (numbers, [one ^ other for one, other in itertools.pairwise(numbers)]):
        for bit in range(128):
            share = sum(value >> bit & 1 for value in values) / len(values)
            # Six standard deviations of a fair coin.
            assert abs(share - 0.5) < 6 * 0.5 / len(values) ** 0.5


@pytest.mark.parametrize("name", ["lonnymq-on-buried", "lonnymq-buried-id"])
def test_headers_reach_no_channel_of_another_tenant(tenant: Tenant, queue: Session, name: str) -> None:
    """A notice of a burial would be a message in the channel that the header names."""
    acme = tenant("acme")
    headers = json.dumps({name: "victim"})
    for call in (
        "tenant_create('acme', 'x', p_headers => %s)",
        "tenant_create_many('{acme,acme}', '{x,y}', p_headers => array[null, %s::jsonb])",
    ):
        with pytest.raises(psycopg.Error, match=f"header {name} must be") as raised:
            acme.run(f"select {call}", headers)
        assert raised.value.sqlstate == "LQ001"
    acme.run("select tenant_create('acme', 'x', p_headers => '{\"lonnymq-on-buried\": \"acme\"}')")
    queue.bury([queue.lease()])
    assert [one.channel for one in queue.take(9)] == ["acme"]


def test_a_uuid_cannot_be_forged(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    made = acme.ask("select message_uuid from tenant_create('acme', 'x')")
    changed = [uuid.UUID(int=made.int ^ 1 << bit) for bit in range(128)]
    assert acme.rows("select outcome from tenant_cancel(%s)", changed) == [("unknown",)] * 128
    queue.run("update setting set salt = '\\x0123456789abcdef0123456789abcdef'")
    assert queue.ask("select message_of_uuid(%s)", made) is None


def test_the_plans_of_the_queues_statements_are_not_shown(
    tenant: Tenant, queue: Session, victim: dict[str, list[uuid.UUID]]
) -> None:
    """Every role may print plans, with the values in them: the salt, and ids."""
    acme = tenant("acme")
    notices: list[str] = []
    acme.connection.add_notice_handler(
        lambda one: notices.append(f"{one.message_primary} {one.message_detail}")
    )
    for setting in ("debug_print_parse", "debug_print_rewritten", "debug_print_plan", "trace_sort"):
        acme.run(f"set {setting} = on")
    acme.run("set client_min_messages = debug5")
    made = acme.ask("select message_uuid from tenant_create('acme', 'x', p_key => 'k')")
    assert notices, "the settings have no effect"
    for call in ("cancel(%s)", "redrive(%s)", "show(%s)"):
        acme.run(f"select * from tenant_{call}", [made, *victim["uuids"]])
    for call in (
        "cancel_key('acme', 'k')",
        "peek('acme')",
        "dead_list()",
        "channels()",
        "history_list('acme')",
    ):
        acme.run(f"select * from tenant_{call}")
    acme.run("select * from tenant_create_many('{acme}', '{x}')")
    acme.run("select * from tenant_redrive_channel('acme')")
    for view in MAY_SELECT:
        acme.run(f"select * from {view}")
    shown = "\n".join(notices)
    for name in ("message_id_seq", "channel_id", "is_only", "salt"):
        assert name not in shown
    assert not re.search(r":relid \d+(?=.*:relname lonnymq)", shown)
    assert "sha256" not in shown


# Names and settings of the caller.


def test_temporary_tables_and_functions_of_the_caller_are_not_used(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    for table in ("tenant", "tenant_channel", "setting", "channel", "message", "dead", "wake", "sleeper"):
        acme.run(f"create temp table {table} (role oid, name text, is_prefix boolean, max_channels integer)")
        acme.run(f"insert into pg_temp.{table} values (%s::regrole, 'victim', false, 9)", quoted(acme))
    for function in (
        "tenant_enter(text, integer) returns void",
        "require_channel(text) returns void",
    ):
        acme.run(f"create function pg_temp.{function} language plpgsql as 'begin return; end'")
    acme.run("set search_path = pg_temp, lonnymq")
    with pytest.raises(DENIED):
        acme.run("select lonnymq.tenant_create('victim', 'x')")
    assert acme.ask("select outcome from lonnymq.tenant_create('acme', 'x')") == "created"
    with pytest.raises(DENIED):
        acme.run("create function lonnymq.tenant_create(text, text) returns void language sql as ''")


def test_objects_in_public_are_not_used(tenant: Tenant, queue: Session) -> None:
    queue.run("grant create, usage on schema public to public")
    acme = tenant("acme", prefix="acme/")
    for name, types, result in (
        ("starts_with", "text, text", "boolean"),
        ("caller_role", "", "text"),
        ("tenant_covers", "varchar", "text"),
        ("pg_has_role", "name, text, text", "boolean"),
        ("to_regrole", "text", "regrole"),
    ):
        acme.run(
            f"create function public.{name}({types}) returns {result} language plpgsql"
            " as $$ begin raise exception 'caught'; end $$"
        )
    acme.run("set search_path = public, pg_catalog, lonnymq")
    assert acme.ask("select outcome from lonnymq.tenant_create('acme/a', 'x')") == "created"
    with pytest.raises(DENIED):
        acme.run("select lonnymq.tenant_create('victim', 'x')")


@pytest.mark.parametrize("channel", ["ACME", "\u00e1cme", "Team/x"])
def test_a_collation_that_ignores_case_covers_no_other_channel(
    tenant: Tenant, queue: Session, channel: str
) -> None:
    queue.run("grant create, usage on schema public to public")
    acme = tenant("acme", prefix="team/")
    try:
        acme.run(
            "create collation public.loose"
            " (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this server has no ICU")
    loose = f"'{channel}' collate public.loose"
    assert acme.ask(f"select {loose} in ('acme', 'team/x')")
    for call in ("create({}, 'x')", "peek({})", "dead_list({})", "history_list({})", "cancel_key({}, 'k')"):
        with pytest.raises(psycopg.Error):
            acme.run(f"select tenant_{call.format(loose)}")
    with pytest.raises(psycopg.Error):
        acme.run(f"select tenant_create_many(array['{channel}'] collate public.loose, '{{x}}')")
    assert queue.ask("select count(*) from message") == 0


@pytest.mark.parametrize(
    "setting",
    [
        "enable_seqscan=on",
        "enable_indexscan=off",
        "row_security=off",
        "array_nulls=off",
        "bytea_output=escape",
        "xmloption=document",
        "standard_conforming_strings=off",
        "plan_cache_mode=force_custom_plan",
        "session_replication_role=replica",
        "lonnymq.schema=public",
    ],
)
def test_no_setting_of_the_session_opens_anything(
    tenant: Tenant, queue: Session, victim: dict[str, list[uuid.UUID]], setting: str
) -> None:
    acme = tenant("acme")
    try:
        acme.run(f"set {setting}")
    except DENIED:
        return
    with pytest.raises(DENIED):
        acme.run("select tenant_create('victim', 'x')")
    assert acme.rows("select outcome from tenant_cancel(%s)", victim["uuids"]) == [("unknown",)] * 6
    assert acme.ask("select outcome from tenant_create('acme', 'x')") == "created"


def test_names_are_never_run_as_sql(tenant: Tenant, queue: Session) -> None:
    names = ["a'); drop table message; --", 'a"b', "a\\b", "%s%I%L", "$1", "{a,b}", "a%/", "'"]
    odd = tenant(*names)
    for name in names:
        assert odd.ask("select outcome from tenant_create(%s, 'x')", name) == "created"
    assert [row[0] for row in odd.rows("select * from tenant_status order by channel")] == sorted(names)


# Roles.


def test_a_tenant_cannot_become_another_role(tenant: Tenant, login: Login, queue: Session) -> None:
    acme, other, pool = tenant("acme"), tenant("other"), login()
    queue.run(f"grant {quoted(acme)} to {quoted(pool)}")
    name = role_of(other)
    for session in (acme, pool):
        for statement, values in (
            (f"set role {quoted(other)}", ()),
            (f"set session authorization {quoted(other)}", ()),
            ("select set_config('role', %s, false)", (name,)),
            ("select set_config('session_authorization', %s, false)", (name,)),
            (f"alter role {quoted(session)} set role = {quoted(other)}; set role {quoted(other)}", ()),
            (f"grant {quoted(other)} to {quoted(session)}", ()),
            ("select lonnymq.queue_grant(%s, 'tenant', '{other}')", (role_of(session),)),
        ):
            session.run("begin")
            with pytest.raises(psycopg.Error):
                session.run(statement, *values)
            session.run("rollback")
    with pytest.raises(DENIED):
        acme.run("select tenant_create('other', 'x')")


def test_code_of_a_tenant_that_runs_in_anothers_session_is_that_session(
    tenant: Tenant, queue: Session
) -> None:
    """A function of a tenant gains nothing: maintenance by the owner of the queue is done as no tenant."""
    queue.run("grant create, usage on schema public to public")
    mallory = tenant("mallory")
    mallory.run(
        "create function public.trap(i integer) returns integer immutable language plpgsql as $$"
        " begin perform lonnymq.tenant_create('victim', 'x'); return i; end $$"
    )
    mallory.run("create table public.bait (i integer)")
    mallory.run("insert into public.bait values (1)")
    for statement in ("create index on public.bait (public.trap(i))", "select public.trap(1)"):
        with pytest.raises(DENIED):
            queue.run(statement)
    mallory.run("create view public.window_ as select public.trap(1)")
    with pytest.raises(DENIED):
        queue.run("select * from public.window_")
    assert queue.ask("select count(*) from message") == 0
    mallory.run("drop table public.bait; drop view public.window_; drop function public.trap")


def test_a_definer_function_acts_as_the_session_that_calls_it(tenant: Tenant, queue: Session) -> None:
    """It may do what both may: its owner needs the privilege, and the session is the tenant."""
    queue.run("grant create, usage on schema public to public")
    mallory, acme = tenant("mallory"), tenant("acme")
    mallory.run(
        "create function public.submit(channel text) returns text security definer language sql as $$"
        " select outcome from lonnymq.tenant_create(channel, 'x') $$"
    )
    with pytest.raises(DENIED):
        acme.run("select public.submit('mallory')")
    with pytest.raises(DENIED):
        mallory.run("select public.submit('acme')")
    mallory.run("drop function public.submit")


# Notifications.


def test_a_notification_says_nothing_and_its_channel_is_unknown(
    tenant: Tenant, login: Login, queue: Session
) -> None:
    acme, other, worker = tenant("acme"), tenant("other"), login("worker")
    worker.run("select sleeper_register('w', 60000)")
    worker.run(f"listen {worker.ask('select queue_event()')}")
    for name in ("lonnymq", "lonnymq_", "other", role_of(other)):
        acme.run(f'listen "{name[:60].replace(chr(34), "")}"')
    other.run("select tenant_create('other', 'x')")
    assert [one.payload for one in worker.connection.notifies(timeout=5, stop_after=1)] == [""]
    assert list(acme.connection.notifies(timeout=0.2)) == []
