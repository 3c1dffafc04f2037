"""Installing and migrating have the same result in every way, by any role and any number of processes."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from lonnymq import (
    InvalidArgument,
    Queue,
    SchemaMissing,
    SchemaOccupied,
    SchemaState,
    SchemaTooNew,
    WrongIsolationLevel,
)
from lonnymq.schema import Step, Steps, changes, files
from lonnymq.schema.inspection import InstalledSchema
from lonnymq.schema.step import quote_identifier
from tests import schema
from tests.conftest import Database
from tests.migration.catalog import describe

HOSTILE = "weird \"; drop schema x; -- ' % %s {x} \\ ü"
SOURCE_DIR = Path(__file__).parents[2] / "src"

Open = Callable[..., psycopg.Connection[Any]]


@pytest.fixture
def empty(database: Database) -> str:
    """A database without a queue."""
    return database(is_empty=True)


@pytest.fixture
def open_(empty: str) -> Iterator[Open]:
    opened: list[psycopg.Connection[Any]] = []

    def open_(dsn: str = empty) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(dsn, autocommit=True))
        return opened[-1]

    yield open_
    for connection in opened:
        connection.close()


def build_from_migrations(name: str) -> Steps[None]:
    """Install version 1 and apply all migrations since."""
    yield Step(f"create schema {quote_identifier(name)}")
    yield from changes.update(name, InstalledSchema(True))
    yield Step("select history_prepare()")


def test_a_fresh_queue_equals_one_built_by_migrations(open_: Open) -> None:
    connection = open_()
    schema.install(connection, "queue_fresh")
    Queue("").caller.run(build_from_migrations("queue_upgraded"), connection)
    fresh, upgraded = describe(connection, "queue_fresh"), describe(connection, "queue_upgraded")
    for kind in fresh:
        assert upgraded[kind] == fresh[kind], f"{kind} differ: does tables/ contain what the migrations do?"
    assert all(fresh.values())


def test_installing_again_changes_nothing(open_: Open) -> None:
    connection = open_()
    assert schema.install(connection).state is SchemaState.CURRENT
    before = describe(connection, "lonnymq")
    salt = connection.execute("select salt from lonnymq.setting").fetchone()
    assert schema.install(connection) == schema.migrate(connection)
    assert describe(connection, "lonnymq") == before
    assert connection.execute("select salt from lonnymq.setting").fetchone() == salt


def test_messages_survive_a_migration(empty: str) -> None:
    with Queue(empty) as queue:
        queue.install()
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        queue.enqueue("a", 2)
        queue.migrate()
        assert message.complete() == "completed"
        assert queue.dequeue()[0].payload == 2
        assert queue.check() == []


def test_migrate_restores_a_changed_function(open_: Open) -> None:
    connection = open_()
    schema.install(connection)
    before = describe(connection, "lonnymq")
    connection.execute(
        "create or replace function queue_event() returns text language sql as $$ select 'x' $$"
    )
    assert describe(connection, "lonnymq") != before
    schema.migrate(connection)
    assert describe(connection, "lonnymq") == before


def test_migrate_without_a_queue_is_an_error(open_: Open) -> None:
    with pytest.raises(SchemaMissing, match=r"there is no queue in schema 'lonnymq': run install\(\)"):
        schema.migrate(open_())


def test_eight_processes_can_install_at_the_same_time(empty: str, open_: Open) -> None:
    code = "import sys, lonnymq; print(lonnymq.Queue(sys.argv[1]).install().state)"
    command = [sys.executable, "-c", code, empty]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(SOURCE_DIR)}, text=True)
        for _ in range(8)
    ]
    try:
        answers = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert answers == ["current\n"] * 8
    assert schema.status(open_()).state is SchemaState.CURRENT


@pytest.mark.parametrize("operation", [schema.install, schema.migrate, schema.uninstall])
def test_a_call_that_waits_for_an_uninstall_finds_the_queue_gone(open_: Open, operation: Any) -> None:
    first, second, third = open_(), open_(), open_()
    schema.install(first)
    first.execute("begin")
    schema.uninstall(first)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(operation, second)
        query = "select wait_event_type from pg_stat_activity where pid = %s"
        while third.execute(query, (second.info.backend_pid,)).fetchone() != ("Lock",):
            assert not waiting.done(), waiting.result()
        first.execute("commit")
        if operation is schema.migrate:
            with pytest.raises(SchemaMissing):
                waiting.result(60)
        else:
            waiting.result(60)
    expected = SchemaState.CURRENT if operation is schema.install else SchemaState.MISSING
    assert schema.status(first).state is expected


def test_a_newer_queue_that_is_incompatible_is_refused(open_: Open) -> None:
    connection = open_()
    schema.install(connection)
    connection.execute("comment on table lonnymq.migration is 'lonnymq later 99 98'")
    before = describe(connection, "lonnymq")
    assert schema.status(connection).state is SchemaState.INCOMPATIBLE
    for operation in (schema.install, schema.migrate):
        with pytest.raises(
            SchemaTooNew, match=r"version 99, .* of version 98 or newer, but this client has \d+: upgrade"
        ):
            operation(connection)
    assert describe(connection, "lonnymq") == before


def test_a_newer_queue_that_is_compatible_is_not_changed(open_: Open) -> None:
    """Its functions are newer than this client's."""
    connection = open_()
    schema.install(connection)
    connection.execute("comment on table lonnymq.migration is 'lonnymq later 99 0'")
    connection.execute(
        "create or replace function lonnymq.queue_event() returns text language sql as $$ select 'newer' $$"
    )
    before = describe(connection, "lonnymq")
    assert schema.install(connection).state is SchemaState.NEWER
    assert schema.migrate(connection).version == 99
    assert describe(connection, "lonnymq") == before


def test_an_older_queue_is_outdated_until_it_is_migrated(open_: Open) -> None:
    connection = open_()
    schema.install(connection)
    mark = f"lonnymq yesterday {files.latest_version()} 0"
    connection.execute(f"comment on table lonnymq.migration is '{mark}'".encode())
    assert schema.status(connection).state is SchemaState.OUTDATED
    assert schema.install(connection).state is SchemaState.CURRENT


@pytest.mark.parametrize("operation", [schema.install, schema.migrate])
@pytest.mark.parametrize("comment", ["null", "'ours; see the wiki'", "'lonnymq x 1'", f"'{'9' * 10_000}'"])
def test_a_lost_version_comment_is_restored(open_: Open, operation: Callable[..., Any], comment: str) -> None:
    """For example after a restore without comments."""
    connection = open_()
    schema.install(connection)
    connection.execute(f"comment on table lonnymq.migration is {comment}".encode())
    assert schema.status(connection).state is SchemaState.OUTDATED
    assert operation(connection).state is SchemaState.CURRENT
    assert schema.status(connection).state is SchemaState.CURRENT


def test_the_version_comment_agrees_with_the_migration_table(open_: Open) -> None:
    connection = open_()
    schema.install(connection)
    connection.execute("insert into lonnymq.migration (version, name, breaks_below) values (0, 'x', 1)")
    schema.migrate(connection)
    rows = connection.execute("select obj_description('lonnymq.migration'::regclass)").fetchall()
    assert rows == [(f"lonnymq {files.fingerprint()} {files.latest_version()} 1",)]


@pytest.mark.parametrize("name", [HOSTILE, "Großbuchstaben und Leerzeichen", "select", "x" * 63])
def test_any_schema_name_works(open_: Open, empty: str, name: str) -> None:
    connection = open_()
    connection.execute("create schema x")
    with Queue(empty, schema=name) as queue:
        queue.install()
        queue.channel("a").set(max_concurrency=2)
        queue.enqueue("a", 1)
        queue.set(history="full")
        assert queue.dequeue(wait=5)[0].complete() == "completed"
        assert queue.history.prepare(days=15) == 1
        assert queue.channel("a").status() is not None
        assert queue.check() == []
        queue.migrate()
        queue.uninstall()
        assert queue.schema_status().state is SchemaState.MISSING
    assert connection.execute("select 1 from pg_namespace where nspname = 'x'").fetchone() == (1,)


def test_two_queues_in_one_database_are_independent(empty: str, open_: Open) -> None:
    connection = open_()
    schema.install(connection, "queue_one")
    schema.install(connection, "queue_two")
    assert describe(connection, "queue_one") == describe(connection, "queue_two")
    with Queue(empty, schema="queue_one") as one, Queue(empty, schema="queue_two") as two:
        one.enqueue("a", 1, key="k")
        two.enqueue("a", 2, key="k")
        assert one.dequeue()[0].payload == 1
        one.uninstall()
        assert two.dequeue()[0].payload == 2


def test_foreign_tables_with_the_queues_names_are_not_touched(open_: Open) -> None:
    connection = open_()
    connection.execute("create schema lonnymq; create table lonnymq.message (theirs text)")
    with pytest.raises(SchemaOccupied, match=r"is not a queue, but contains table lonnymq\.message: choose"):
        schema.install(connection)
    schema.uninstall(connection)
    assert connection.execute("select theirs from lonnymq.message").fetchall() == []


@pytest.mark.parametrize(
    "theirs",
    [
        "create type lonnymq.lease as enum ('a')",
        "create function lonnymq.queue_event() returns text language sql as $$ select 'theirs' $$",
        "create view lonnymq.turn as select 1",
        "create table lonnymq.migration (version integer)",
    ],
)
def test_foreign_objects_of_every_kind_are_refused(open_: Open, theirs: str) -> None:
    connection = open_()
    connection.execute("create schema lonnymq")
    connection.execute(theirs.encode())
    with pytest.raises(SchemaOccupied):
        schema.install(connection)


def test_an_existing_empty_schema_is_used(open_: Open) -> None:
    """For example if an administrator creates it because the installing role may not create schemas."""
    connection = open_()
    connection.execute("create schema lonnymq")
    assert schema.install(connection).state is SchemaState.CURRENT
    connection.execute("create table lonnymq.theirs ()")
    with pytest.raises(SchemaOccupied, match="theirs"):
        schema.uninstall(connection)
    connection.execute("drop table lonnymq.theirs")
    schema.uninstall(connection)
    assert schema.status(connection).state is SchemaState.MISSING


def test_a_role_that_owns_nothing_else_can_install(empty: str, open_: Open) -> None:
    connection = open_()
    role = f"installer_{connection.info.backend_pid}"
    connection.execute(
        sql.SQL("create role {0} login password 'secret'; create schema lonnymq authorization {0}").format(
            sql.Identifier(role)
        )
    )
    try:
        with Queue(psycopg.conninfo.make_conninfo(empty, user=role, password="secret")) as queue:
            queue.install()
            queue.enqueue("a", 1)
            assert queue.dequeue()[0].complete() == "completed"
    finally:
        connection.execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(sql.Identifier(role)))


def test_a_migration_keeps_grants_and_revokes_those_to_public(open_: Open) -> None:
    connection = open_()
    role = f"producer_{connection.info.backend_pid}"
    connection.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    try:
        schema.install(connection)
        connection.execute("select lonnymq.queue_grant(%s, 'producer')", (role,))
        connection.execute("grant execute on function lonnymq.queue_status() to public")
        before = describe(connection, "lonnymq")["privileges"]
        schema.migrate(connection)
        after = describe(connection, "lonnymq")["privileges"]
        granted = [row for row in after if role in row[2]]
        assert granted == [row for row in before if role in row[2]]
        assert len(granted) > 5
        # An entry without a role before the equals sign is for PUBLIC; no entries at all mean the default.
        assert not [row for row in after if re.search(r"[{,]=", row[2])]
        assert not [row for row in after if row[0] == "function" and row[2] == "None"]
    finally:
        connection.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(role)))


@pytest.mark.parametrize("name", ["queue_by_script", HOSTILE])
def test_psql_can_run_the_printed_script(empty: str, open_: Open, name: str, tmp_path: Path) -> None:
    script = tmp_path / "install.sql"
    script.write_text(Queue(empty, schema=name).sql(), encoding="utf-8")
    try:
        command = ["psql", "--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script), empty]
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("psql is not installed")
    connection = open_()
    assert schema.status(connection, name).state is SchemaState.CURRENT
    schema.install(connection, "queue_by_client")
    by_script, by_client = describe(connection, name), describe(connection, "queue_by_client")
    assert by_script == by_client


def test_an_installation_is_atomic(open_: Open) -> None:
    connection = open_()
    connection.execute("begin")
    schema.install(connection)
    assert schema.status(connection).state is SchemaState.CURRENT
    connection.execute("rollback")
    assert schema.status(connection).state is SchemaState.MISSING


def test_the_callers_settings_are_restored(open_: Open) -> None:
    connection = open_()
    connection.execute("begin; set local search_path to pg_catalog; set local client_min_messages to error")
    schema.install(connection)
    assert connection.execute("show search_path").fetchone() == ("pg_catalog",)
    assert connection.execute("show client_min_messages").fetchone() == ("error",)
    assert connection.execute("show check_function_bodies").fetchone() == ("on",)
    connection.execute("rollback")


def test_another_isolation_level_is_refused(open_: Open) -> None:
    connection = open_()
    connection.execute("begin isolation level repeatable read")
    with pytest.raises(WrongIsolationLevel):
        schema.install(connection)
    connection.execute("rollback")


@pytest.mark.parametrize("name", ["", "x" * 64, "public", "pg_mine", "a\0b"])
def test_an_invalid_schema_name_is_refused(name: str, empty: str) -> None:
    with psycopg.connect(empty) as connection, pytest.raises(InvalidArgument, match="schema must be"):
        schema.install(connection, name)


def test_the_migration_table_lists_every_migration(open_: Open) -> None:
    connection = open_()
    schema.install(connection)
    rows = connection.execute("select version, name from lonnymq.migration order by version").fetchall()
    assert rows == [(migration.version, migration.name) for migration in files.migrations()]
    assert [version for version, _ in rows] == list(range(1, len(rows) + 1))


def test_every_function_has_a_valid_body(open_: Open) -> None:
    """Bodies are not checked while the files run, because a function may call one of a later file."""
    connection = open_()
    schema.install(connection)
    connection.execute("set search_path to lonnymq")
    validate = (
        "select p.oid::regprocedure::text, case l.lanname when 'sql' then fmgr_sql_validator(p.oid)"
        " else plpgsql_validator(p.oid) end from pg_proc p join pg_language l on l.oid = p.prolang"
        " where p.pronamespace = 'lonnymq'::regnamespace"
    )
    checked = connection.execute(validate).fetchall()
    assert {name.partition("(")[0] for name, _ in checked} == set(files.created("function"))
