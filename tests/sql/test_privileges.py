"""A28: least privilege, tested with real roles that log in."""

import hashlib
import uuid

import psycopg
import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.sql.conftest import DENIED, Login, role_of
from tests.sql.session import Session

TABLES = (
    "exact_count",
    "audit",
    "channel",
    "claim",
    "cron",
    "dead",
    "history",
    "history_floor",
    "history_overflow",
    "history_reader",
    "lease",
    "message",
    "publication",
    "setting",
    "sleeper",
    "stream",
    "tenant",
    "tenant_channel",
    "turn",
    "wake",
    "worker",
    "worker_process",
)
VIEWS_WITHOUT_CONTENT = (
    *("channel_status", "lease_status", "dead_letter", "table_size", "history_partition", "worker_status"),
)

WORKER_SECRET = "0123456789abcdef" * 2
WORKER_NAME = f"w:{hashlib.sha256(WORKER_SECRET.encode()).hexdigest()[:16]}"
REPORT = (
    f"select worker_report('{WORKER_NAME}', '{WORKER_SECRET}', '', 0, '', '{{}}', 0, 0, false, 0, 0, '{{}}',"
    " '{}', '{}', false)"
)
CALLS = {
    "create": "select message_create('a', 'x')",
    "create_many": "select message_create_many(array['a'], array['x'::bytea])",
    "publish": "select message_publish('p', array[gen_random_uuid()], '{0}')",
    "cancel": "select message_cancel(array[1])",
    "cancel_key": "select message_cancel_key('a', 'k')",
    "dequeue": "select message_dequeue()",
    "read": "select message_read('{}', '{}')",
    **{action.name: f"select message_{action.name}('{{}}', '{{}}')" for action in ACTIONS},
    "heartbeat": "select message_heartbeat('{}', '{}')",
    "register": "select sleeper_register('w', 1000)",
    "clear": "select sleeper_clear('w')",
    "worker_register": f"select worker_register('{WORKER_NAME}', '{WORKER_SECRET}', null)",
    "worker_watch": "select worker_watch()",
    "worker_leave": f"select worker_leave('{WORKER_NAME}', '{WORKER_SECRET}')",
    "worker_report": REPORT,
    "worker_drain": "select worker_drain('nobody')",
    "group_create": "select group_create(array['a'], array['x'::bytea], 'a', 'x')",
    "group_check": "select group_check('{}')",
    "group_sweep": "select group_sweep()",
    "group_results": "select group_results(1, 1)",
    "event": "select queue_event()",
    "horizon": "select queue_horizon()",
    "channel_set": "select channel_set('a')",
    "channel_pause": "select channel_pause('a')",
    "channel_resume": "select channel_resume('a')",
    "channel_delete": "select channel_delete('a')",
    "channel_explain": "select channel_explain('a')",
    "channel_busiest": "select channel_busiest()",
    "channel_overdue": "select channel_overdue()",
    "channel_list": "select channel_list('{a}')",
    "channel_page": "select channel_page()",
    "message_page": "select message_page()",
    "message_peek": "select message_peek()",
    "message_peek_outline": "select message_peek_outline()",
    "message_show": "select message_show('{}')",
    "message_of_uuid": "select message_of_uuid(gen_random_uuid())",
    "tenant_create": "select tenant_create('a', 'x')",
    "tenant_create_many": "select tenant_create_many(array['a'], array['x'::bytea])",
    "tenant_cancel": "select tenant_cancel('{}')",
    "tenant_cancel_key": "select tenant_cancel_key('a', 'k')",
    "tenant_show": "select tenant_show('{}')",
    "tenant_peek": "select tenant_peek('a')",
    "tenant_channels": "select tenant_channels()",
    "tenant_dead_list": "select tenant_dead_list()",
    "tenant_history_list": "select tenant_history_list('a')",
    "tenant_redrive": "select tenant_redrive('{}')",
    "tenant_redrive_channel": "select tenant_redrive_channel('a')",
    "dead_list": "select dead_list()",
    "dead_page": "select dead_page()",
    "dead_show": "select dead_show('{}')",
    "dead_groups": "select dead_groups()",
    "dead_redrive": "select dead_redrive('{}')",
    "dead_redrive_channel": "select dead_redrive_channel('a')",
    "dead_purge": "select dead_purge('{}')",
    "dead_purge_channel": "select dead_purge_channel('a')",
    "queue_set": "select queue_set()",
    "queue_status": "select queue_status()",
    "queue_pulse": "select queue_pulse()",
    "queue_activity": "select queue_activity()",
    "queue_tables": "select queue_tables()",
    "queue_check": "select queue_check()",
    "to_epoch": "select to_epoch(now())",
    "cron_set": "select cron_set('c', '* * * * *', 'a', 'x')",
    "cron_due": "select cron_due()",
    "cron_tick": "select cron_tick('c', now(), now(), '{}', now() + interval '1 hour')",
    "cron_pause": "select cron_pause('c')",
    "cron_resume": "select cron_resume('c')",
    "cron_delete": "select cron_delete('c')",
    "cron_list": "select cron_list()",
    "message_outline": "select message_outline('{}')",
    "message_status_outline": "select message_status_outline('{}')",
    "message_attempts": "select message_attempts(1)",
    "message_run_now": "select message_run_now('{}')",
    "dead_outline": "select dead_outline('{}')",
    "queue_count": "select queue_count()",
    "audit_record": "select audit_record('alice', 'channel_pause')",
    "audit_page": "select audit_page()",
    "cron_overdue": "select cron_overdue()",
    "history_lag": "select history_lag()",
    "stage_discard": "select stage_discard('p', '{}')",
    "stream_publish": "select stream_publish('s', 0, array[gen_random_uuid()], '{0}')",
    "claim_backlog": "select claim_backlog()",
    "claim_take": "select claim_take(null, 'c', false, 1, 1000)",
    "claim_messages": "select claim_messages(null, 1000)",
    "claim_heartbeat": "select claim_heartbeat(null, 1000)",
    "claim_read": "select claim_read('{}', '{}')",
    "claim_complete": "select claim_complete(null)",
    "history_follow": "select history_follow('r', null, null, null, false, 1, null)",
    "history_slices": "select history_slices(null, null, null, null, null, null, 1)",
    "history_done": "select history_done('r', 0, 0)",
    "history_readers": "select history_readers()",
    "history_blocker": "select history_blocker()",
    "history_forget": "select history_forget('r')",
}
PRODUCER = {
    *("create", "create_many", "publish", "cancel", "cancel_key", "to_epoch"),
    *("cron_set", "cron_delete", "stage_discard", "stream_publish", "group_create"),
}
WORKER = {
    *("dequeue", "read", *(action.name for action in ACTIONS), "heartbeat"),
    *("register", "clear", "event", "horizon", "to_epoch"),
    *("worker_register", "worker_watch", "worker_leave", "worker_report", "cron_due", "cron_tick"),
    *("claim_backlog", "claim_take", "claim_messages", "claim_heartbeat", "claim_read", "claim_complete"),
    *("group_check", "group_sweep", "group_results"),
}
READER = {
    *("channel_explain", "channel_busiest", "channel_overdue", "channel_list", "channel_page"),
    "message_peek_outline",
    *("queue_status", "queue_pulse", "queue_activity", "queue_tables", "to_epoch"),
    *("cron_list", "cron_overdue", "history_lag", "audit_page"),
    *("message_page", "message_outline", "message_status_outline", "message_attempts", "queue_count"),
    *("dead_page", "dead_outline", "dead_groups", "history_readers", "history_blocker"),
}
OPERATOR = {name for name in CALLS if not name.startswith("tenant_")}
ALLOWED = {"producer": PRODUCER, "worker": WORKER, "reader": READER, "operator": OPERATOR, None: set()}


def qualified(call: str) -> str:
    return call.replace("select ", "select lonnymq.", 1)


def allowed_calls(session: Session) -> set[str]:
    """Return the calls that are not refused for lack of privileges."""
    allowed = set()
    for name, call in CALLS.items():
        try:
            session.run(qualified(call))
        except DENIED:
            continue
        allowed.add(name)
    return allowed


@pytest.mark.parametrize("kind", ["producer", "worker", "reader", "operator"])
def test_each_kind_of_role_can_call_what_it_needs_and_nothing_else(login: Login, kind: str) -> None:
    assert allowed_calls(login(kind)) == ALLOWED[kind]


def test_a_role_without_grants_can_do_nothing(login: Login, queue: Session) -> None:
    queue.fill("a", 2)
    nobody = login(search_path=None)
    for call in CALLS.values():
        with pytest.raises(DENIED):
            nobody.run(qualified(call))
    for relation in (*TABLES, *VIEWS_WITHOUT_CONTENT, "message_json", "migration", "stage"):
        with pytest.raises(DENIED):
            nobody.run(f"select from lonnymq.{relation}")


def test_public_has_no_privilege_on_any_object_or_new_partition(queue: Session) -> None:
    """A role that may use the schema gets nothing else from PUBLIC."""
    queue.run("select history_prepare(20)")
    granted = """
      select relname::text from pg_class, aclexplode(relacl) a
      where relnamespace = 'lonnymq'::regnamespace and a.grantee = 0
      union all
      select p.oid::regprocedure::text
      from pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
      where pronamespace = 'lonnymq'::regnamespace and a.grantee = 0
      union all
      select nspname::text from pg_namespace, aclexplode(nspacl) a where nspname = 'lonnymq' and a.grantee = 0
    """
    assert queue.rows(granted) == []


@pytest.mark.parametrize("kind", ["producer", "worker", "reader"])
def test_no_table_and_no_content_can_be_read(login: Login, queue: Session, kind: str) -> None:
    queue.create("a", b"secret")
    session = login(kind)
    for relation in (*TABLES, "message_json", "stage"):
        with pytest.raises(DENIED):
            session.run(f"select from {relation}")
    for table in (*TABLES, "stage"):
        with pytest.raises(DENIED):
            session.run(f"delete from {table}")


def test_a_reader_sees_figures_but_no_contents(login: Login, queue: Session) -> None:
    queue.fill("a", 3)
    queue.bury([queue.lease()], "broken")
    queue.lease()
    queue.run(REPORT)
    reader = login("reader")
    for view in VIEWS_WITHOUT_CONTENT:
        assert reader.rows(f"select * from {view}")
    assert reader.ask("select reason from channel_explain('a')") == "ready"


def test_an_operator_can_read_messages_and_history(login: Login, queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    queue.fill("a", 2)
    queue.complete([queue.lease()])
    operator = login("operator")
    assert operator.ask("select message ->> 'content' from message_json") == "x"
    assert operator.ask("select content from history") == b"x"
    for view in VIEWS_WITHOUT_CONTENT:
        operator.rows(f"select * from {view}")


def test_an_operator_cannot_change_tables_or_grant(login: Login) -> None:
    operator = login("operator")
    for statement in (
        "update message set content = 'x'",
        "delete from dead",
        "insert into wake (channel_id) values (1)",
        "select queue_grant('postgres', 'operator')",
        "create table lonnymq.mine ()",
        "drop table message",
    ):
        with pytest.raises(psycopg.Error) as raised:
            operator.run(statement)
        assert raised.value.sqlstate == "42501"


def test_a_producer_can_stage_but_not_read_the_stage(login: Login) -> None:
    producer = login("producer")
    with producer.connection.cursor().copy(
        "copy stage (publication, part, ordinal, channel, contents) from stdin"
    ) as copy:
        copy.write_row(("p", uuid.UUID(int=1), 0, "a", [b"x"]))
    with pytest.raises(DENIED):
        producer.run("select from stage")
    assert (
        producer.ask("select outcome from message_publish('p', %s, '{1}')", [uuid.UUID(int=1)]) == "published"
    )


def test_a_worker_completes_the_message_of_a_producer(login: Login) -> None:
    producer, worker = login("producer"), login("worker")
    created = producer.create("a", b"hello")
    (leased,) = worker.dequeue()
    assert (leased.message_id, leased.content) == (created, b"hello")
    assert worker.complete([leased]) == ["completed"]


def test_a_worker_can_prepare_history_and_prune_the_stage(login: Login) -> None:
    worker = login("worker")
    worker.run("select history_prepare(30)")
    assert worker.ask("select stage_prune()") == 0


def test_no_kind_of_role_may_call_internal_functions(login: Login, queue: Session) -> None:
    """No kind of role needs these functions."""
    for kind in ("producer", "worker", "reader", "operator"):
        role = role_of(login(kind))
        for name in (
            "dead_insert",
            "lease_lock",
            "lease_end",
            "lease_end_cancelled",
            "lease_expire",
            "message_settle",
            "turn_insert",
            "turn_refund",
            "clock_step_fix",
            "clock_step_fix_messages",
        ):
            granted = queue.ask(
                "select bool_or(has_function_privilege(%s, oid, 'execute')) from pg_proc"
                " where pronamespace = 'lonnymq'::regnamespace and proname = %s",
                role,
                name,
            )
            assert granted is False, f"{kind} may call {name}"


def test_a_role_with_few_privileges_gets_the_error_for_its_argument(login: Login) -> None:
    producer = login("producer")
    for call in ("to_epoch('infinity')", "message_create('', 'x')"):
        with pytest.raises(psycopg.Error) as raised:
            producer.run(f"select {call}")
        assert raised.value.sqlstate == "LQ001"


def test_queue_revoke_revokes_every_grant(login: Login, queue: Session) -> None:
    session = login("operator")
    queue.run("select queue_grant(%s, 'producer')", role_of(session))
    queue.run("select queue_revoke(%s)", role_of(session))
    assert allowed_calls(Session(session.connection)) == set()
    with pytest.raises(DENIED):
        session.run("select from lonnymq.channel_status")
    queue.run("select queue_grant(%s, 'reader')", role_of(session))
    assert allowed_calls(session) == READER


def test_a_role_can_have_several_kinds(login: Login, queue: Session) -> None:
    session = login("producer")
    queue.run("select queue_grant(%s, 'worker')", role_of(session))
    assert allowed_calls(session) == PRODUCER | WORKER


def test_a_grant_survives_a_migration(login: Login, queue: Session) -> None:
    from tests import schema

    producer = login("producer")
    schema.migrate(queue.connection)
    assert allowed_calls(producer) == PRODUCER


def test_an_unknown_kind_is_refused(queue: Session) -> None:
    for kind in ("", "admin", None, "Producer"):
        with pytest.raises(psycopg.Error) as raised:
            queue.run("select queue_grant(current_user, %s)", kind)
        assert raised.value.sqlstate == "LQ001"
        assert "kind" in str(raised.value)


def test_an_unknown_role_is_refused(queue: Session) -> None:
    for function in ("queue_grant(%s, 'reader')", "queue_revoke(%s)"):
        for role in ("nobody of this name", "", None):
            with pytest.raises(psycopg.Error) as raised:
                queue.run(f"select {function}", role)
            assert raised.value.sqlstate == "LQ001"
            assert "role" in str(raised.value)


def test_every_security_definer_function_pins_its_search_path(queue: Session) -> None:
    loose = """
      select p.proname from pg_proc p
      where p.pronamespace = 'lonnymq'::regnamespace and p.prosecdef
        and not exists (select from unnest(p.proconfig) c where c ~ '^search_path="?lonnymq"?, pg_temp$')
    """
    assert queue.rows(loose) == []


def test_every_callable_function_pins_its_search_path(queue: Session, login: Login) -> None:
    """Also those that run as their caller: a superuser's query must not call operators of another role."""
    operator = role_of(login("operator"))
    loose = """
      select p.proname from pg_proc p
      where p.pronamespace = 'lonnymq'::regnamespace and has_function_privilege(%s, p.oid, 'execute')
        and not exists (select from unnest(p.proconfig) c where c like 'search_path=%%')
    """
    assert queue.rows(loose, operator) == []


def test_temporary_tables_with_the_same_names_are_not_used(login: Login, queue: Session) -> None:
    operator = login("operator", search_path="pg_temp,lonnymq")
    for table in ("message", "wake", "turn", "lease", "channel", "setting", "sleeper", "dead", "cron"):
        operator.run(f"create temp table {table} (like lonnymq.dead_letter)")
    created = queue.create("a", b"real")
    (leased,) = operator.dequeue()
    assert (leased.message_id, leased.content) == (created, b"real")
    assert operator.complete([leased]) == ["completed"]
    assert operator.ask("select outcome from lonnymq.message_create('b', 'x')") == "created"
    assert queue.ask("select count(*) from message") == 1


def test_functions_and_operators_in_public_are_not_used(login: Login, queue: Session) -> None:
    """A role that may create in public creates objects with the names that functions and views use."""
    queue.run("grant create, usage on schema public to public")
    stranger = login(search_path=None)
    stranger.run("create table public.caught (by text)")
    stranger.run("grant insert on public.caught to public")
    trap = "begin insert into public.caught values (current_user || ' {0}'); return {1}; end"
    shadows = [
        ("now", "", "timestamptz", "pg_catalog.now()"),
        ("clock_timestamp", "", "timestamptz", "pg_catalog.now()"),
        ("pg_notify", "text, varchar", "void", ""),
        ("to_epoch", "timestamptz", "bigint", "0"),
        ("from_epoch", "bigint", "timestamptz", "pg_catalog.now()"),
        ("reject", "text, text, text", "void", ""),
        ("channel_id", "bytea, text", "bigint", "0"),
        ("sleepers_notify", "", "void", ""),
        ("divide", "bigint, numeric", "numeric", "1"),
        ("times", "numeric, integer", "numeric", "1"),
        ("multiply", "bigint, integer", "bigint", "1"),
        ("modulo", "bigint, integer", "bigint", "1"),
        ("plus", "bigint, integer", "bigint", "1"),
        ("equals", "text, varchar", "boolean", "true"),
        ("make_interval", "secs numeric", "interval", "'1 s'"),
        ("floor", "bigint", "bigint", "1"),
        ("floor", "integer", "bigint", "1"),
        ("octet_length", "character varying", "integer", "1"),
        ("length", "character varying", "integer", "1"),
    ]
    for name, arguments, returns, value in shadows:
        stranger.run(
            f"create function public.{name}({arguments}) returns {returns} language plpgsql as"
            f" $${trap.format(name, value)}$$"
        )
    for operator, function, left, right in [
        ("/", "divide", "bigint", "numeric"),
        ("*", "times", "numeric", "integer"),
        ("*", "multiply", "bigint", "integer"),
        ("%", "modulo", "bigint", "integer"),
        ("+", "plus", "bigint", "integer"),
        ("=", "equals", "text", "varchar"),
    ]:
        stranger.run(
            f"create operator public.{operator}"
            f" (function = public.{function}, leftarg = {left}, rightarg = {right})"
        )
    victim = Session(queue.connection)
    victim.run("set search_path = public, lonnymq")
    victim.run("select lonnymq.channel_set('a', '{\"release_interval_ms\": 60000}')")
    victim.run("select lonnymq.message_create('a', 'x', p_key => 'k')")
    victim.run("select lonnymq.message_create_many(array['a', 'b'], array['x', 'y'::bytea])")
    taken = victim.rows("select message_id, token from lonnymq.message_dequeue(5)")
    victim.run(
        "select lonnymq.message_heartbeat(%s, %s)", [row[0] for row in taken], [row[1] for row in taken]
    )
    victim.run(
        "select lonnymq.message_complete(%s, %s)", [row[0] for row in taken], [row[1] for row in taken]
    )
    victim.run("select lonnymq.to_epoch(pg_catalog.now()), lonnymq.queue_status(), lonnymq.queue_check()")
    victim.run("select lonnymq.channel_explain('a')")
    for view in (*VIEWS_WITHOUT_CONTENT, "message_json"):
        victim.rows(f"select * from lonnymq.{view}")
    assert victim.rows("select * from public.caught") == []
