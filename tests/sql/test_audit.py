"""What operators did is recorded with the action, bounded, and beyond the reach of those who read it."""

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login, Open
from tests.sql.session import Session

RECORD = "select audit_record(%s, 'channel_pause', %s)"


def subjects(queue: Session, arguments: str = "") -> list[str]:
    return [row[0] for row in queue.rows(f"select subject from audit_page({arguments})")]


def test_a_record_is_kept_if_and_only_if_its_transaction_is(queue: Session) -> None:
    for name, is_kept in (("kept", True), ("gone", False)):
        with queue.connection.transaction(force_rollback=not is_kept):
            queue.run("select channel_pause(%s)", name)
            queue.run(RECORD, "alice", name)
    assert subjects(queue) == ["kept"]
    assert [row[0] for row in queue.rows("select channel from channel_status")] == ["kept"]


def test_the_database_role_is_recorded_whatever_the_actor_claims(queue: Session, login: Login) -> None:
    operator = login("operator")
    operator.run(RECORD, "postgres", "acme")
    role = operator.ask("select current_user::text")
    assert queue.rows("select actor, role from audit_page()") == [("postgres", role)]


def test_nobody_but_the_owner_can_change_the_record(queue: Session, login: Login) -> None:
    queue.run(RECORD, "alice", "acme")
    for kind in ("operator", "reader", "producer", "worker"):
        session = login(kind)
        for attempt in (
            "insert into audit (acted_at, actor, role, verb, arguments, outcomes)"
            " values (now(), 'eve', 'eve', 'v', '{}', '{}')",
            "update audit set actor = 'eve'",
            "delete from audit",
            "truncate audit",
            "select * from audit",
            "select setval(pg_get_serial_sequence('lonnymq.audit', 'id'), 1)",
        ):
            with pytest.raises(DENIED):
                session.run(attempt)
    assert subjects(queue) == ["acme"]


def test_pages_are_newest_first_and_can_be_filtered(queue: Session) -> None:
    for n in range(7):
        queue.run(RECORD, "alice" if n % 2 else "bob", f"c{n}")
    queue.run("select audit_record('bob', 'queue_set')")
    assert subjects(queue, "p_limit => 3") == [None, "c6", "c5"]
    third = queue.ask("select min(id) from audit_page(p_limit => 3)")
    assert subjects(queue, f"p_limit => 3, p_before_id => {third}") == ["c4", "c3", "c2"]
    assert subjects(queue, "'alice'") == ["c5", "c3", "c1"]
    assert subjects(queue, "'alice', 'c3'") == ["c3"]
    assert subjects(queue, "'alice', 'c2'") == []


@pytest.mark.broken_on_purpose
def test_only_the_newest_hundred_thousand_are_kept(queue: Session, session: Open) -> None:
    """Records are inserted directly. A transaction that holds an old record delays nobody."""
    queue.run(
        "insert into audit (acted_at, actor, role, verb, subject, arguments, outcomes)"
        " select now(), 'a', 'r', 'v', 'c' || n, '{}', '{}' from generate_series(1, 100020) n"
    )
    holder = session(autocommit=False)
    holder.run("select from audit where id = 2 for update")
    queue.run("set lock_timeout = '2s'")
    for n in range(3):
        queue.run(RECORD, "alice", f"new {n}")
    assert queue.rows("select id from audit where id < 30") == [(2,), *((n,) for n in range(24, 30))]
    holder.connection.rollback()
    queue.run(RECORD, "alice", "last")
    assert queue.ask("select count(*) from audit") == 100_000
    assert queue.ask("select min(id) from audit") == 25


def test_hostile_texts_are_stored_as_they_are(queue: Session) -> None:
    hostile = "<script>alert(1)</script>'; drop table audit; -- \x1b[31m \u202e"
    queue.run("select audit_record(%s, 'v', %s, jsonb_build_object('x', %s::text))", *[hostile] * 3)
    assert queue.rows("select actor, subject, arguments ->> 'x' from audit_page()") == [(hostile,) * 3]
    with pytest.raises(psycopg.Error):
        queue.run("select audit_record('a', 'v', p_arguments => '{\"x\": \"\\u0000\"}')")
