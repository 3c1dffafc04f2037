"""What a tenant tries in order to learn something about others, with what PostgreSQL shows to every role."""

import re
import uuid
from typing import Any

import psycopg
import pytest

from tests.plans.plan import flush_statistics
from tests.sql.conftest import DENIED, Login, Tenant
from tests.sql.session import Session

FIRST_ID = 7_340_000_000_001
LEAKED = re.compile(r"73400000\d{5}|victim|a secret", re.IGNORECASE)
# These show all sessions' locks, statements and settings; what is in them is looked for while others work.
CATALOGS = (
    "select n.nspname || '.' || quote_ident(c.relname)"
    " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v') order by 1"
)


@pytest.fixture
def victim(tenant: Tenant, queue: Session, login: Login) -> Session:
    """Return a session of another tenant with an open transaction; an attempt reports its progress."""
    queue.run(f"alter sequence message_id_seq restart {FIRST_ID}")
    queue.run('select queue_set(\'{"history": "full"}\')')
    keep = '{"lonnymq-keep-result-ms": "60000"}'
    session = tenant("victim", prefix="victim/")
    for n in range(4):
        session.run(
            "select tenant_create('victim', 'a secret', p_key => %s, p_headers => %s)", f"a secret {n}", keep
        )
    done, dead, held = queue.take(3)
    queue.end("message_complete", [done], [b"a secret result"], types=["bytea[]"])
    queue.bury([dead], "a secret error")
    queue.end(
        "message_heartbeat",
        [held],
        *(30_000, False, True, [0.5], ["a secret step"]),
        types=["bigint", "boolean", "boolean", "real[]", "text[]"],
    )
    assert queue.ask("select count(*) from result") == 1
    assert queue.ask("select progress_note from lease") == "a secret step"
    queue.run("analyze")
    worker = login("worker")
    worker.run("listen victim_channel")
    worker.run("begin; select message_dequeue(1) /* a secret statement */")
    session.run("begin; select tenant_create('victim', 'x', p_key => 'a secret key')")
    return session


def texts_of(session: Session, query: str) -> str:
    try:
        return str(session.rows(query))
    except psycopg.Error as error:
        return str(error)


def test_no_catalog_and_no_statistics_show_names_ids_or_contents(
    tenant: Tenant, queue: Session, victim: Session
) -> None:
    acme = tenant("acme")
    acme.run("select tenant_create('acme', 'x', p_key => 'k')")
    catalogs = [name for (name,) in queue.rows(CATALOGS)]
    assert len(catalogs) > 150
    shown = {name: texts_of(acme, f"select * from {name}") for name in catalogs}
    assert {name for name, text in shown.items() if LEAKED.search(text)} == set()
    assert "permission denied" in shown["pg_catalog.pg_statistic"]
    # It sees that there are sessions, and not what they do.
    assert "insufficient privilege" in shown["pg_catalog.pg_stat_activity"]
    victim.run("rollback")


def test_results_and_progress_of_an_attempt_are_shown_to_no_tenant(
    tenant: Tenant, queue: Session, victim: Session
) -> None:
    """Neither those of another one nor of its own: workers write them for the callers of the application."""
    acme = tenant("acme")
    ids = [one for (one,) in queue.rows("select message_id from lease union select message_id from result")]
    uuids = [one for (one,) in queue.rows("select message_uuid(id) from unnest(%s::bigint[]) id", ids)]
    victim.run("rollback")
    for session in (acme, victim):
        for query in (
            f"select * from lonnymq.message_status_of(array{ids})",
            f"select * from lonnymq.message_status_outline(array{ids})",
            "select * from lonnymq.result",
            "select progress, progress_note from lonnymq.lease",
            "select * from lonnymq.lease_status",
            "select lonnymq.result_event()",
            "select * from lonnymq.queue_pulse()",
        ):
            with pytest.raises(DENIED):
                session.run(query)
        rows = session.rows("select * from tenant_show(%s)", uuids) + session.rows(
            "select * from tenant_status"
        )
        assert "secret step" not in str(rows)
        assert "secret result" not in str(rows)
    assert acme.rows("select * from tenant_show(%s)", uuids) == []
    assert len(victim.rows("select * from tenant_show(%s)", uuids)) == 1


def test_sequences_tell_no_number_after_the_tenants_own_message(
    tenant: Tenant, queue: Session, victim: Session
) -> None:
    acme = tenant("acme")
    acme.run("select tenant_create('acme', 'x')")
    for query in (
        "select lastval()",
        "select currval('lonnymq.message_id_seq')",
        "select currval(pg_get_serial_sequence('lonnymq.message', 'id'))",
        "select pg_sequence_last_value('lonnymq.message_id_seq')",
        "select * from pg_get_sequence_data('lonnymq.message_id_seq')",
        "select pg_sequence_parameters('lonnymq.message_id_seq')",
        "select * from pg_sequences where schemaname = 'lonnymq'",
        "insert into lonnymq.message default values returning id",
    ):
        assert not re.search(r"7340000\d{6}", texts_of(acme, query).replace(str(FIRST_ID), "")), query
    victim.run("rollback")


def differences(before: list[Any], after: list[Any]) -> list[tuple[str, list[int]]]:
    """Return how much more was read of each table."""
    counts = zip(before, after, strict=True)
    more = [(old[0], [b - a for a, b in zip(old[1:], new[1:], strict=True)]) for old, new in counts]
    return [(name, counts) for name, counts in more if any(counts)]


def test_a_call_reads_as_many_rows_whether_anothers_channel_exists_or_not(
    tenant: Tenant, victim: Session
) -> None:
    """A session can count what its own transaction reads. So it can be told apart by time neither."""
    acme = tenant("acme", prefix="acme/")
    read = (
        "select relname::text, seq_scan, seq_tup_read, coalesce(idx_scan, 0), coalesce(idx_tup_fetch, 0)"
        " from pg_stat_xact_all_tables"
        " where schemaname = 'lonnymq' order by 1"
    )
    own = acme.ask("select message_uuid from tenant_create('acme', 'x')")
    calls = (
        *("tenant_create('{}', 'x')", "tenant_create('{}', 'x', p_key => 'a secret key')"),
        *("tenant_cancel_key('{}', 'a secret key')", "tenant_peek('{}')", "tenant_dead_list('{}')"),
        *("tenant_history_list('{}')", "tenant_redrive_channel('{}')"),
        "tenant_create_many('{{{}}}', '{{x}}')",
    )
    for call in calls:
        found = []
        # The first call also plans statements, which reads catalogs.
        for channel in ("nobody", "nobody", "victim", "nobody/a", "victim/a"):
            acme.run("begin")
            # What earlier transactions have read is still there.
            before = acme.rows(read)
            acme.run("savepoint s")
            with pytest.raises(DENIED):
                acme.run(f"select * from {call.format(channel)}")
            acme.run("rollback to s")
            found.append(differences(before, acme.rows(read)))
            acme.run("rollback")
        assert found[1], call
        assert found[1] == found[2] == found[3] == found[4], call
    assert acme.rows("select outcome from tenant_cancel(%s)", [own, uuid.uuid4()]) == [
        ("cancelled",),
        ("unknown",),
    ]
    victim.run("rollback")


def test_a_default_policy_is_shown_as_far_as_it_binds_the_tenants_channels(
    tenant: Tenant, queue: Session
) -> None:
    """The figures of its own channels, in one way, and nothing of what others have in their place."""
    policy = '{"max_concurrency": 61, "max_size": 62, "max_attempts": 63, "weight": 64, "release_burst": 65}'
    queue.run("select queue_set(jsonb_build_object('default_policy', %s::jsonb))", policy)
    queue.set("other", max_size=71, max_concurrency=72)
    acme = tenant("acme")
    acme.run("select tenant_create('acme', 'x')")
    rows = acme.run("select * from tenant_status")
    names = [one.name for one in rows.description or []]
    shown = dict(zip(names, rows.fetchall()[0], strict=True))
    assert {name: value for name, value in shown.items() if value in (61, 62, 63, 64, 65, 71, 72)} == {
        "max_concurrency": 61,
        "max_size": 62,
    }
    for statement in (
        "select * from lonnymq.setting",
        "update lonnymq.setting set max_size = null",
        """select lonnymq.queue_set('{"default_policy": null}')""",
        "select lonnymq.queue_set()",
        """select lonnymq.channel_set('acme', '{"max_size": "none"}')""",
        "select lonnymq.channel_delete('acme')",
        "select lonnymq.policy_announce(1)",
        "insert into lonnymq.policy_change default values",
        "select * from lonnymq.channel_status",
    ):
        with pytest.raises(DENIED):
            acme.run(statement)
    flush_statistics(queue)
    assert queue.rows("select max_size, max_concurrency from setting") == [(62, 61)]


def test_a_trace_of_notifications_does_not_tell_their_name(
    tenant: Tenant, login: Login, queue: Session
) -> None:
    """With that name, a tenant could wake workers, and see when others create messages."""
    worker = login("worker")
    worker.run("select sleeper_register('w', 60000)")
    acme = tenant("acme")
    notices: list[str] = []
    acme.connection.add_notice_handler(lambda one: notices.append(str(one.message_primary)))
    acme.run("set trace_notify = on; set client_min_messages = debug5")
    acme.run("listen mine; notify mine")
    assert any("mine" in one for one in notices), "the settings have no effect"
    acme.run("select tenant_create('acme', 'x', p_headers => '{\"lonnymq-keep-result-ms\": \"60000\"}')")
    acme.run("select tenant_cancel(array(select message_uuid from tenant_peek('acme')))")
    for name in ("queue_event", "result_event"):
        assert queue.ask(f"select {name}()") not in "\n".join(notices)


def errors_shown(error: psycopg.Error) -> Any:
    return [getattr(error.diag, name) for name in dir(error.diag) if not name.startswith("_")]


def test_an_error_in_the_middle_of_a_call_names_no_id(tenant: Tenant, queue: Session) -> None:
    """Not in its detail either, nor in its context: a time limit, or a lock that is not granted."""
    queue.run(f"alter sequence message_id_seq restart {FIRST_ID}")
    acme, victim = tenant("acme"), tenant("victim")
    for session, channel in ((victim, "victim"), (acme, "acme")):
        session.run("select tenant_create(%s, 'a secret')", channel)
    queue.run("begin; lock table message in access exclusive mode")
    for setting in ("statement_timeout", "lock_timeout"):
        acme.run(f"set {setting} = '20ms'")
        for call in ("tenant_create('acme', 'x', p_key => 'k')", "tenant_peek('acme')", "tenant_channels()"):
            with pytest.raises(psycopg.Error) as raised:
                acme.run(f"select * from {call}")
            assert raised.value.sqlstate in ("57014", "55P03")
            assert not LEAKED.search(str(errors_shown(raised.value)))
        acme.run(f"reset {setting}")
    queue.run("rollback")
