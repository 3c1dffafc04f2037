"""Default privileges of the owner give nobody access to the queue; grants by queue_grant stay."""

import pytest

from lonnymq.schema.step import quote_identifier
from tests import schema
from tests.sql.conftest import DENIED, Login, role_of
from tests.sql.session import Session

# The privileges on all objects of a schema of roles that do not own them.
PRIVILEGES_OF_OTHERS = """
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


def privileges_of_others(queue: Session, name: str) -> set[tuple[str, str, str, str]]:
    return set(queue.connection.execute(PRIVILEGES_OF_OTHERS.encode(), {"schema": name}).fetchall())


def grant_by_default(queue: Session, grantee: str, scope: str = "") -> None:
    kinds = KINDS if scope else (*KINDS, "schemas")
    for kind in kinds:
        queue.run(f"alter default privileges {scope} grant all on {kind} to {grantee}")


@pytest.mark.parametrize("scope", ["", "in schema shop"])
@pytest.mark.parametrize("is_public", [False, True])
def test_install_revokes_what_default_privileges_grant(
    queue: Session, login: Login, scope: str, is_public: bool
) -> None:
    other = login(search_path=None)
    if scope:
        queue.run("create schema shop")
    grant_by_default(queue, "public" if is_public else quote_identifier(role_of(other)), scope)
    schema.install(queue.connection, "shop")
    assert privileges_of_others(queue, "shop") == set()
    queue.run('select shop.queue_set(\'{"history": "full"}\')')
    assert queue.ask("select shop.history_prepare(20)") == 6
    assert privileges_of_others(queue, "shop") == set()
    # Also with the privilege to use the schema.
    queue.run("select shop.queue_grant(%s, 'producer')", role_of(other))
    for statement in (
        *("select from shop.message", "select from shop.history", "select from shop.setting"),
        *("delete from shop.lease", "select nextval('shop.message_id_seq')", "select shop.queue_check()"),
    ):
        with pytest.raises(DENIED):
            other.run(statement)
    partition = queue.ask("select min(name) from shop.history_partition")
    with pytest.raises(DENIED):
        other.run(f"select from shop.{partition}")


def test_migrate_revokes_default_privileges_and_keeps_grants(queue: Session, login: Login) -> None:
    other = login(search_path=None)
    for kind in ("producer", "worker", "reader", "operator"):
        login(kind)
    granted = privileges_of_others(queue, "lonnymq")
    assert len(granted) > 100
    grant_by_default(queue, quote_identifier(role_of(other)))
    # As an upgrade that adds a function, a view and a partition.
    queue.run("drop function history_forget; drop view table_size")
    queue.run(f"drop table {queue.ask('select max(name) from history_partition')}")
    lost = granted - privileges_of_others(queue, "lonnymq")
    schema.migrate(queue.connection)
    # New objects are granted to the roles that had everything else of their kind, and to nobody else.
    assert privileges_of_others(queue, "lonnymq") == granted
    assert {name for _, name, _, _ in lost} == {"history_forget(text)", "table_size"}


def test_migrate_revokes_what_no_kind_of_role_may_have(queue: Session, login: Login) -> None:
    """Granted by hand, or by default privileges of an earlier time."""
    reader = login("reader")
    role = quote_identifier(role_of(reader))
    granted = privileges_of_others(queue, "lonnymq")
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
    assert privileges_of_others(queue, "lonnymq") > granted
    schema.migrate(queue.connection)
    assert privileges_of_others(queue, "lonnymq") == granted
    assert reader.rows("select * from channel_status") == []


def test_migrate_does_not_touch_other_objects_of_the_owner(queue: Session, login: Login) -> None:
    """For example a view in the queue's schema that the owner has granted to a role."""
    reader = login("reader")
    queue.run("create view backlog as select count(*) from message")
    queue.run(f"grant select on backlog to {quote_identifier(role_of(reader))}")
    schema.migrate(queue.connection)
    assert reader.rows("select * from backlog") == [(0,)]
