"""Default privileges of the owner let nobody into the queue; what queue_grant gave stays."""

import pytest

from lonnymq.schema.step import quoted
from tests import schema
from tests.sql.conftest import DENIED, Login, role_of
from tests.sql.session import Session

# Who may do what on any object of a schema without being its owner.
OPEN = """
  select 'schema', n.nspname::text, a.privilege_type, a.grantee::regrole::text
  from pg_namespace n, aclexplode(n.nspacl) a
  where n.nspname = %(schema)s and a.grantee <> n.nspowner
  union all
  select 'routine', p.oid::regprocedure::text, a.privilege_type, a.grantee::regrole::text
  from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
  where p.pronamespace = %(schema)s::regnamespace and a.grantee <> p.proowner
  union all
  select 'relation', c.oid::regclass::text, a.privilege_type, a.grantee::regrole::text
  from pg_class c, aclexplode(c.relacl) a
  where c.relnamespace = %(schema)s::regnamespace and a.grantee <> c.relowner
  union all
  select 'column', c.oid::regclass || '.' || t.attname, a.privilege_type, a.grantee::regrole::text
  from pg_class c join pg_attribute t on t.attrelid = c.oid, aclexplode(t.attacl) a
  where c.relnamespace = %(schema)s::regnamespace and a.grantee <> c.relowner
"""
KINDS = ("tables", "sequences", "functions")


def who_may(queue: Session, name: str) -> set[tuple[str, str, str, str]]:
    return set(queue.connection.execute(OPEN.encode(), {"schema": name}).fetchall())


def open_by_default(queue: Session, grantee: str, scope: str = "") -> None:
    kinds = KINDS if scope else (*KINDS, "schemas")
    for kind in kinds:
        queue.run(f"alter default privileges {scope} grant all on {kind} to {grantee}")


@pytest.mark.parametrize("scope", ["", "in schema shop"])
@pytest.mark.parametrize("is_public", [False, True])
def test_an_installed_queue_is_closed_to_whom_defaults_favour(
    queue: Session, login: Login, scope: str, is_public: bool
) -> None:
    favoured = login(search_path=None)
    if scope:
        queue.run("create schema shop")
    open_by_default(queue, "public" if is_public else quoted(role_of(favoured)), scope)
    schema.install(queue.connection, "shop")
    assert who_may(queue, "shop") == set()
    queue.run('select shop.queue_set(\'{"history": "full"}\')')
    assert queue.ask("select shop.history_prepare(20)") == 6
    assert who_may(queue, "shop") == set()
    # Also if it may enter the schema.
    queue.run("select shop.queue_grant(%s, 'producer')", role_of(favoured))
    for statement in (
        *("select from shop.message", "select from shop.history", "select from shop.setting"),
        *("delete from shop.lease", "select nextval('shop.message_id_seq')", "select shop.queue_check()"),
    ):
        with pytest.raises(DENIED):
            favoured.run(statement)
    partition = queue.ask("select min(name) from shop.history_partition")
    with pytest.raises(DENIED):
        favoured.run(f"select from shop.{partition}")


def test_a_migration_closes_what_is_new_and_leaves_grants_alone(queue: Session, login: Login) -> None:
    favoured = login(search_path=None)
    for kind in ("producer", "worker", "reader", "operator"):
        login(kind)
    granted = who_may(queue, "lonnymq")
    assert len(granted) > 100
    open_by_default(queue, quoted(role_of(favoured)))
    # As an upgrade does that brings a function, a view and a partition.
    queue.run("drop function history_forget; drop view table_size")
    queue.run(f"drop table {queue.ask('select max(name) from history_partition')}")
    lost = granted - who_may(queue, "lonnymq")
    schema.migrate(queue.connection)
    assert who_may(queue, "lonnymq") == granted - lost
    assert {name for _, name, _, _ in lost} == {"history_forget(text)", "table_size"}


def test_a_migration_takes_back_what_no_kind_of_role_may_have(queue: Session, login: Login) -> None:
    """Given by hand, or by defaults of the time before."""
    reader = login("reader")
    role = quoted(role_of(reader))
    granted = who_may(queue, "lonnymq")
    partition = queue.ask("select max(name) from history_partition")
    for privilege, target in (
        ("select", "message"),
        ("select (content)", "dead"),
        ("insert (staged_at)", "stage"),
        ("all", "turn"),
        ("select", partition),
        ("all", "sequence wake_id_seq"),
        ("execute", "function queue_seal"),
        ("execute", "function lease_expire"),
    ):
        for grantee in (role, "public"):
            queue.run(f"grant {privilege} on {target} to {grantee}")
    assert who_may(queue, "lonnymq") > granted
    schema.migrate(queue.connection)
    assert who_may(queue, "lonnymq") == granted
    assert reader.rows("select * from channel_status") == []


def test_what_the_owner_keeps_beside_the_queue_is_its_own_affair(queue: Session, login: Login) -> None:
    """A view of the owner's in the queue's schema, for somebody, stays as it is."""
    reader = login("reader")
    queue.run("create view backlog as select count(*) from message")
    queue.run(f"grant select on backlog to {quoted(role_of(reader))}")
    schema.migrate(queue.connection)
    assert reader.rows("select * from backlog") == [(0,)]
