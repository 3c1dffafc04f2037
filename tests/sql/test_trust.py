"""Installing, migrating or examining a queue never runs code of other roles. Tested with real roles."""

import contextlib

import psycopg
import pytest

from lonnymq import Queue, SchemaOccupied, SchemaState, SchemaUnsafe
from lonnymq.schema import files
from lonnymq.schema.step import quote_identifier
from tests import schema
from tests.cli.conftest import runner
from tests.examples.pages import ROOT, blocks
from tests.sql.conftest import Login, role_of
from tests.sql.session import Session

# The installer's files call to_char with a date and a text; PostgreSQL's own function takes a timestamp.
TRAP = """
  create function {0}.to_char(date, text) returns text language plpgsql as
  $$ begin insert into {0}.caught values (current_user); return '20300101'; end $$
"""
PAGE = ROOT / "docs" / "howto" / "least-privilege.md"
CAUGHT = "create table {0}.caught (by text); grant insert on {0}.caught to public; "


@pytest.fixture
def mallory(login: Login, queue: Session) -> Session:
    """A role whose only privilege is to create schemas in this database."""
    mallory = login(search_path=None)
    database = quote_identifier(queue.ask("select current_database()"))
    queue.run(f"grant create on database {database} to {quote_identifier(role_of(mallory))}")
    return mallory


def create_schema(session: Session, name: str) -> None:
    session.run(f"create schema {name}; grant usage on schema {name} to public; {CAUGHT.format(name)}")


def test_a_superuser_does_not_install_into_another_roles_schema(queue: Session, mallory: Session) -> None:
    mallory.run("create schema shop")
    with pytest.raises(SchemaUnsafe, match=r"'shop' belongs to role .* SET ROLE .* choose another"):
        schema.install(queue.connection, "shop")
    create_schema(mallory, "trapped")
    mallory.run(TRAP.format("trapped"))
    with pytest.raises(SchemaUnsafe):
        schema.install(queue.connection, "trapped")
    queue.run("set search_path = trapped, public")
    for operation in (schema.install, schema.status, schema.uninstall):
        if operation is schema.install:
            with pytest.raises(SchemaUnsafe):
                operation(queue.connection, "trapped")
        else:
            operation(queue.connection, "trapped")
    Queue("", schema="trapped").examine(connection=queue.connection)
    assert queue.rows("select * from trapped.caught") == []


def test_a_queue_of_another_role_is_neither_migrated_nor_used(queue: Session, mallory: Session) -> None:
    """Even if it looks like a queue, including the version comment."""
    schema.install(mallory.connection, "shop")
    create_schema(mallory, "traps")
    mallory.run(TRAP.format("traps").replace("function traps.", "function shop."))
    for operation in (schema.install, schema.migrate):
        with pytest.raises(SchemaUnsafe, match="belongs to role"):
            operation(queue.connection, "shop")
    assert queue.rows("select * from traps.caught") == []


@pytest.mark.parametrize("grantee", ["public", "mallory"])
@pytest.mark.parametrize("operation", [schema.install, schema.migrate])
def test_a_schema_where_others_may_create_is_refused(
    queue: Session, mallory: Session, grantee: str, operation: object
) -> None:
    name = "lonnymq" if operation is schema.migrate else "shop"
    queue.run("create schema shop")
    to = grantee if grantee == "public" else quote_identifier(role_of(mallory))
    queue.run(f"grant create on schema {name} to {to}")
    with pytest.raises(SchemaUnsafe, match=r"REVOKE CREATE ON SCHEMA .* FROM ") as raised:
        operation(queue.connection, name)  # type: ignore[operator]
    # The statement in the error message fixes the problem.
    queue.run(str(raised.value).partition(": run ")[2].partition(", then")[0])
    assert operation(queue.connection, name).state is SchemaState.CURRENT  # type: ignore[operator]


PLANTED = {
    "function": TRAP,
    "function (procedure)": "create procedure {0}.planted() language sql as $$ select 1 $$",
    "function (aggregate)": "create aggregate {0}.planted(text) (sfunc = textcat, stype = text)",
    "operator": "create operator {0}.|| (function = texteq, leftarg = text, rightarg = text)",
    "type planted": "create type {0}.planted as enum ('a')",
    "type d": "create domain {0}.d as text",
    "table": "create table {0}.history_planted (a integer)",
    "view": "create view {0}.planted as select 1",
    "sequence": "create sequence {0}.planted",
    "collation": "create collation {0}.planted (locale = 'C')",
    "text search configuration": "create text search configuration {0}.planted (copy = simple)",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_objects_of_other_roles_in_the_schema_are_refused(
    queue: Session, mallory: Session, kind: str
) -> None:
    """The role created the object before its privilege to create was revoked."""
    role = quote_identifier(role_of(mallory))
    queue.run(f"create schema shop; {CAUGHT.format('shop')}")
    for name in ("shop", "lonnymq"):
        queue.run(f"grant create, usage on schema {name} to {role}")
        mallory.run(PLANTED[kind].format(name).replace(f"{name}.caught", "shop.caught"))
        queue.run(f"revoke create on schema {name} from {role}")
    for operation, name in ((schema.install, "shop"), (schema.migrate, "lonnymq")):
        with pytest.raises(SchemaUnsafe, match=f"contains {kind.split()[0]}.* of ") as raised:
            operation(queue.connection, name)
        assert role_of(mallory) in str(raised.value)
    assert queue.rows("select * from shop.caught") == []
    queue.run(f"drop owned by {role} cascade; drop table shop.caught")
    assert schema.install(queue.connection, "shop") is not None
    assert schema.migrate(queue.connection).state is SchemaState.CURRENT


def test_a_trigger_of_another_role_is_refused(queue: Session, mallory: Session) -> None:
    create_schema(mallory, "traps")
    mallory.run(
        "create function traps.catch() returns trigger language plpgsql as"
        " $$ begin insert into traps.caught values (current_user); return new; end $$"
    )
    queue.run(f"grant usage on schema lonnymq to {quote_identifier(role_of(mallory))}")
    queue.run(f"grant trigger on setting to {quote_identifier(role_of(mallory))}")
    mallory.run(
        "create trigger planted before insert on lonnymq.setting for each row execute function traps.catch()"
    )
    with pytest.raises(SchemaUnsafe, match=r"trigger planted on table lonnymq\.setting"):
        schema.migrate(queue.connection)
    assert queue.rows("select * from traps.caught") == []
    queue.run("drop trigger planted on setting")
    schema.migrate(queue.connection)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mallory.run("create trigger planted before insert on lonnymq.setting execute function traps.catch()")


# Created by roles with privileges that were granted by hand. Triggers have no owner, so all are refused.
CREATED_BY_OTHERS = {
    "trigger planted on table lonnymq.message": "create trigger planted before insert on lonnymq.message"
    " for each row when (traps.catch(new.content)) execute function suppress_redundant_updates_trigger()",
    "trigger planted on view lonnymq.channel_status": "create trigger planted instead of insert"
    " on lonnymq.channel_status for each row execute function suppress_redundant_updates_trigger()",
    "constraint pin_id_fkey on table traps.pin with table traps.pin": "create table traps.pin"
    " (id bigint references lonnymq.message(id) on delete cascade)",
}
# Created by the owner itself, as after REASSIGN OWNED, but using code of other roles.
CREATED_BY_OWNER = {
    "index planted with function": "create index planted on message (id) where traps.catch(content)",
    "index planted with operator": "create index planted on message ((content operator(traps.===) content))",
    "default value for column error of table dead with type": "alter table dead"
    " alter error set default 'x'::traps.checked",
    "constraint planted on table message with": "alter table message"
    " add constraint planted check (traps.catch(content)) not valid",
    "rule planted on table message with": "create rule planted as on insert to message"
    " where traps.catch(new.content) do also nothing",
    "policy planted on table message with": "create policy planted on message using (traps.catch(content))",
    "statistics object public.planted with": "create statistics public.planted"
    " on (traps.catch(content)), id from message",
}


def set_traps(mallory: Session) -> None:
    create_schema(mallory, "traps")
    mallory.run(
        "create function traps.catch(bytea) returns boolean language plpgsql immutable as"
        " $$ begin perform traps.note(); return true; end $$;"
        "create function traps.note() returns void language plpgsql as"
        " $$ begin insert into traps.caught values (current_user); end $$;"
        "create operator traps.=== (function = byteaeq, leftarg = bytea, rightarg = bytea);"
        "create domain traps.checked as text check (traps.catch(value::bytea))"
    )


@pytest.mark.parametrize("found", [*CREATED_BY_OTHERS, *CREATED_BY_OWNER])
def test_dependents_of_tables_that_could_run_others_code_are_refused(
    queue: Session, mallory: Session, dsn: str, found: str
) -> None:
    set_traps(mallory)
    role = quote_identifier(role_of(mallory))
    queue.run(f"grant usage on schema lonnymq to {role}; grant all on all tables in schema lonnymq to {role}")
    if found in CREATED_BY_OTHERS:
        mallory.run(CREATED_BY_OTHERS[found])
    else:
        queue.run(CREATED_BY_OWNER[found])
    queue.run("truncate traps.caught")
    with pytest.raises(SchemaUnsafe, match="drop all triggers and all unknown objects") as raised:
        schema.migrate(queue.connection)
    told = str(raised.value).replace("lonnymq.", "")
    assert found.replace("lonnymq.", "") in told
    with pytest.raises(psycopg.errors.RaiseException, match="other roles can run code in this schema"):
        queue.run(Queue(dsn).sql(version=1))
    queue.run("rollback")
    examined = Queue("", schema="lonnymq").examine(connection=queue.connection).trust
    assert examined is not None
    assert not examined.is_closed
    assert queue.rows("select * from traps.caught") == []
    queue.run(f"drop owned by {role} cascade")
    queue.run("drop trigger if exists planted on message; drop trigger if exists planted on channel_status")
    queue.run("drop rule if exists planted on message; drop statistics if exists public.planted")
    assert schema.migrate(queue.connection).state is SchemaState.CURRENT


def test_views_of_other_roles_over_the_queue_are_accepted(queue: Session, mallory: Session) -> None:
    role = quote_identifier(role_of(mallory))
    queue.run(f"select queue_grant('{role_of(mallory)}', 'operator')")
    mallory.run("create schema report; create view report.channels as select * from lonnymq.channel_status")
    assert schema.migrate(queue.connection).state is SchemaState.CURRENT
    queue.run(f"drop owned by {role} cascade")


FORGED = """
  create schema {0}; grant usage on schema {0} to public;
  create table {0}.setting (); create table {0}.turn (); create table {0}.message ();
  create table {0}.migration (version {1}, breaks_below {1});
  grant select on {0}.migration to public;
  create view {0}.channel_status as select traps.catch() as channel;
  create function {0}.queue_status() returns boolean language sql as $$ select traps.catch() $$;
  create function {0}.queue_check(boolean) returns boolean language sql as $$ select traps.catch() $$;
  grant select on {0}.channel_status to public
"""
# Ways to run code of a table's owner when the table is read.
FORGERIES = {
    "policies": "alter table policies.migration enable row level security;"
    " create policy planted on policies.migration using (traps.catch());"
    " insert into policies.migration values (1, 0)",
    "types": "insert into types.migration values (row(1), row(0))",
    "predicates": "create index on predicates.migration (version) where traps.fold(1);"
    " insert into predicates.migration values (1, 0)",
    "expressions": "create index on expressions.migration ((traps.fold(1)));"
    " insert into expressions.migration values (1, 0)",
    "views": "drop table views.migration;"
    " create view views.migration as select 1 as version, 0 as breaks_below where traps.catch();"
    " grant select on views.migration to public",
}


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("has_version_comment", [True, False])
def test_inspecting_a_queue_of_another_role_runs_none_of_its_code(
    queue: Session, login: Login, mallory: Session, dsn: str, name: str, has_version_comment: bool
) -> None:
    """Whoever inspects it, and however much it looks like a queue, above all for a superuser."""
    create_schema(mallory, "traps")
    mallory.run(
        "create function traps.catch() returns boolean language plpgsql as"
        " $$ begin insert into traps.caught values (current_user); return true; end $$;"
        "create function traps.fold(integer) returns boolean language plpgsql immutable as"
        " $$ begin return traps.catch(); end $$;"
        "create type traps.number as (v integer);"
        "create function traps.cast(traps.number) returns integer language plpgsql as"
        " $$ begin return traps.catch()::integer; end $$;"
        "create cast (traps.number as integer) with function traps.cast as implicit"
    )
    mallory.run(FORGED.format(name, "traps.number" if name == "types" else "integer"))
    mallory.run(FORGERIES[name])
    if has_version_comment:
        kind = "view" if name == "views" else "table"
        comment = f"lonnymq {files.fingerprint()} {files.latest_version()} 0"
        mallory.run(f"comment on {kind} {name}.migration is '{comment}'")
    mallory.run("truncate traps.caught")
    guest = login("operator")
    looks_installed = has_version_comment and name != "views"
    expected = SchemaState.CURRENT if looks_installed else SchemaState.MISSING
    for session in (queue, guest):
        assert schema.status(session.connection, name).state is expected
        if session is guest and looks_installed:
            schema.install(session.connection, name)
            continue
        for operation in (schema.install, schema.migrate):
            with pytest.raises(SchemaUnsafe, match="belongs to role"):
                operation(session.connection, name)
    Queue("", schema=name).examine(connection=queue.connection)
    runner(dsn)("doctor", "--schema", name)
    with Queue(dsn, schema=name) as opened, opened.caller.source.connection() as connection:
        opened.caller.require_compatible(connection)
    queue.run(f"create table {name}.ours ()")
    with contextlib.suppress(SchemaOccupied):
        schema.uninstall(queue.connection, name)
    assert mallory.rows("select * from traps.caught") == []


def test_an_ordinary_owner_installs_directly_or_by_set_role(
    queue: Session, mallory: Session, login: Login
) -> None:
    member = login(search_path=None)
    owner = quote_identifier(role_of(mallory))
    queue.run(f"create schema shop authorization {owner}")
    queue.run(f"grant {owner} to {quote_identifier(role_of(member))}")
    for session in (queue, member):
        with pytest.raises(SchemaUnsafe):
            schema.install(session.connection, "shop")
    member.run(f"set role {owner}")
    assert schema.install(member.connection, "shop").state is SchemaState.CURRENT
    queue.run(f"set role {owner}")
    assert schema.migrate(queue.connection, "shop").state is SchemaState.CURRENT
    queue.run("reset role")
    others = queue.rows(
        "select c.oid::regclass from pg_class c where c.relnamespace = 'shop'::regnamespace"
        " and pg_get_userbyid(c.relowner) <> %s",
        role_of(mallory),
    )
    assert others == []


def test_a_queue_can_be_handed_over_as_documented(
    queue: Session, mallory: Session, login: Login, dsn: str
) -> None:
    """From a superuser to a role without other privileges; grants stay."""
    owner, producer = role_of(mallory), login("producer")
    (handing_over,) = (block for block in blocks(PAGE, "sql") if "alter routine" in block.code)
    queue.run(handing_over.code.replace("lonnymq_owner", quote_identifier(owner).replace("'", "''")))
    found = Queue("", schema="lonnymq").examine(connection=queue.connection)
    assert found.trust is not None
    assert (found.trust.owner, found.trust.owner_is_superuser, found.trust.is_closed) == (owner, False, True)
    assert schema.migrate(mallory.connection).state is SchemaState.CURRENT
    producer.create("a", b"hello")
    mallory.run('set search_path = lonnymq; select queue_set(\'{"history": "full"}\')')
    (leased,) = mallory.dequeue()
    assert mallory.complete([leased]) == ["completed"]
    assert mallory.ask("select xid from history_follow('r', null, null, null, false, null, null)") is not None
    # So that the fixtures can drop the role.
    queue.run(f"reassign owned by {quote_identifier(owner)} to current_user")


def test_install_succeeds_for_any_role_if_the_queue_is_current(login: Login, queue: Session) -> None:
    """Programs call install() when they start."""
    producer = login("producer")
    assert schema.install(producer.connection).state is SchemaState.CURRENT
    queue.run("comment on table migration is 'lonnymq of yesterday'")
    with pytest.raises(SchemaUnsafe, match="only the owner may install or migrate"):
        schema.install(producer.connection)


def test_the_script_of_a_migration_makes_the_same_checks(queue: Session, mallory: Session, dsn: str) -> None:
    create_schema(mallory, "traps")
    queue.run(f"grant create, usage on schema lonnymq to {quote_identifier(role_of(mallory))}")
    mallory.run(TRAP.format("traps").replace("function traps.", "function lonnymq."))
    script = Queue(dsn).sql(version=1)
    with pytest.raises(psycopg.errors.RaiseException, match="other roles can run code in this schema"):
        queue.run(script)
    queue.run("rollback")
    queue.run(f"revoke create on schema lonnymq from {quote_identifier(role_of(mallory))}")
    with pytest.raises(psycopg.errors.RaiseException, match=r"to_char\(date,text\)"):
        queue.run(script)
    queue.run("rollback")
    mallory.run("drop function lonnymq.to_char(date, text)")
    queue.run(script)
    assert queue.rows("select * from traps.caught") == []


def test_a_schema_with_other_objects_of_the_installer_is_refused(queue: Session) -> None:
    """Another role may have created them, as after REASSIGN OWNED."""
    queue.run(f"create schema shop; {CAUGHT.format('shop')} {TRAP.format('shop')}")
    with pytest.raises(SchemaOccupied, match=r"is not a queue, but contains function shop\.to_char"):
        schema.install(queue.connection, "shop")
    assert queue.rows("select * from shop.caught") == []


def test_a_role_without_privileges_cannot_block_a_migration(queue: Session, mallory: Session) -> None:
    """Neither by advisory locks nor by locking the schema."""
    mallory.run("select pg_advisory_lock(hashtextextended('lonnymq install lonnymq', 0))")
    mallory.run("begin; savepoint s")
    for statement in ("comment on schema lonnymq is null", "drop schema lonnymq"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            mallory.run(statement)
        mallory.run("rollback to s")
    queue.run("set lock_timeout = '5s'; set statement_timeout = '60s'")
    queue.run("comment on schema lonnymq is 'orders; see the wiki'")
    assert schema.migrate(queue.connection).state is SchemaState.CURRENT
    assert queue.ask("select obj_description('lonnymq'::regnamespace)") == "orders; see the wiki"
    mallory.run("rollback")
