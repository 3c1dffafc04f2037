"""A running queue is upgraded: the released wheel and the next release, beside each other on both schemas."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import Queue, SchemaState
from lonnymq.embedded import EmbeddedServer
from tests.conftest import Database
from tests.migration.catalog import describe
from tests.migration.fleet import ROOT, TIMEOUT_S, Fleet, Releases, eventually, run, schema_state

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# The step at which a migration is asked to go on: it is killed where it has stopped.
KILL = 0
CLI = "from lonnymq.cli import main\nsys.argv = ['lonnymq', *{!r}]\nmain()"


@contextmanager
def migration_in_steps(release: Path, dsn: str) -> Iterator[Callable[[int], str]]:
    """Migrate in a process that stops before a step, each time from the beginning (see cut_off)."""
    command = [sys.executable, "-m", "tests.migration.cut_off", str(release), dsn]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(step: int) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{step}\n")
            process.stdin.flush()
            return "" if step == KILL else process.stdout.readline().strip()

        yield ask
        process.stdin.close()


def test_a_fleet_is_upgraded_and_rolled_back_under_load(
    fleet: Fleet, releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    old, new = releases.released, releases.later
    producer, worker = fleet.start(old, "producer"), fleet.start(old, "worker")
    fleet.wait_for_progress(producer, worker)
    with psycopg.connect(released_dsn) as holder:
        holder.execute("select lonnymq.message_create(p_channel => 'held', p_content => '1')")
        migration = fleet.start(new, "migrate")
        waiting = (
            "select from pg_locks where relation = 'message'::regclass and mode = 'AccessExclusiveLock'"
            " and not granted"
        )
        eventually(lambda: connection.execute(waiting).fetchone() is not None, "it waits for the table")
        # It cannot change the table, and keeps nobody from using it.
        fleet.wait_for_progress(producer, worker, by=100)
        assert migration.poll() is None
        assert schema_state(old, released_dsn) == SchemaState.CURRENT
    assert migration.wait(TIMEOUT_S) == 0
    assert (schema_state(old, released_dsn), schema_state(new, released_dsn)) == (
        SchemaState.NEWER,
        SchemaState.CURRENT,
    )

    later = [fleet.start(new, role) for role in ("producer", "noting", "worker")]
    fleet.wait_for_progress(producer, worker, *later)
    # Back to the old release: the new schema serves it alone.
    fleet.stop(*later)
    rolled_back = fleet.start(old, "worker")
    fleet.wait_for_progress(producer, rolled_back)
    fleet.stop(producer)
    remaining = "select count(*) from message"
    eventually(lambda: connection.execute(remaining).fetchone() == (0,), "the queue is empty")
    fleet.stop(worker, rolled_back)
    assert connection.execute("select * from queue_check()").fetchall() == []
    created, processed = fleet.ids("producer", "noting"), fleet.ids("worker")
    assert len(created) == len(set(created)) >= 200
    assert set(created) <= set(processed)
    assert fleet.complaints() == ""


def test_a_migration_that_is_killed_at_any_step_leaves_the_old_version_working(
    releases: Releases, released_dsn: str, database: Database, connection: psycopg.Connection[Any]
) -> None:
    killed = 0
    with migration_in_steps(releases.later, released_dsn) as ask, Queue(released_dsn) as old:
        # Most steps replace one function each.
        for step in chain(range(1, 40), count(40, 7)):
            answer = ask(step)
            if answer == "stopped":
                ask(KILL)
            old.enqueue("a", step)
            [message] = old.dequeue()
            assert message.complete() == "completed"
            assert old.check() == []
            if answer != "stopped":
                break
            killed += 1
    assert answer == "done"
    assert killed > 50
    rows = connection.execute("select version from migration order by version").fetchall()
    assert rows == [(1,), (2,), (3,)]
    other = database(is_empty=True)
    run(releases.later, other, "queue.install()")
    with psycopg.connect(other, autocommit=True) as fresh_connection:
        fresh, upgraded = describe(fresh_connection, "lonnymq"), describe(connection, "lonnymq")
    for kind in ("functions", "views", "indexes", "constraints", "privileges", "migrations"):
        assert sorted(upgraded[kind]) == sorted(fresh[kind]), kind


def test_a_server_that_crashes_during_a_migration_has_the_old_version(
    releases: Releases, own_server: Callable[..., EmbeddedServer]
) -> None:
    server = own_server()
    run(releases.released, server.dsn, "queue.install()")
    use = "queue.enqueue('a', 1)\n[message] = queue.dequeue()\nmessage.complete()\nprint(queue.check())"
    with migration_in_steps(releases.later, server.dsn) as ask:
        # Within each phase, and just before its commit; the second one builds an index.
        for step in (13, 19, 20, 28, 36, 60, 200):
            assert ask(step) == "stopped"
            server.kill()
            server.start()
            ask(KILL)
            assert run(releases.released, server.dsn, use) == "[]"
        assert ask(10_000) == "done"
    assert schema_state(releases.later, server.dsn) == SchemaState.CURRENT
    assert run(releases.released, server.dsn, use) == "[]"


def test_a_migration_that_gets_no_lock_gives_up_and_names_the_transaction(
    releases: Releases, released_dsn: str
) -> None:
    code = "try:\n  queue.migrate(retry_for_s=0)\nexcept lonnymq.Busy as error:\n  print(error)"
    with psycopg.connect(released_dsn, application_name="a report") as holder:
        holder.execute("select count(*) from lonnymq.message")
        refused = run(releases.later, released_dsn, code)
        assert "0002_add_note.sql did not get a lock on message within 200 ms" in refused
        assert f"pid {holder.info.backend_pid} (postgres, a report)" in refused
    assert schema_state(releases.released, released_dsn) == SchemaState.CURRENT
    assert run(releases.later, released_dsn, "print(queue.migrate().state)") == SchemaState.CURRENT


def test_the_plan_says_what_is_left_to_do_and_changes_nothing(releases: Releases, released_dsn: str) -> None:
    run(
        releases.released,
        released_dsn,
        "queue.enqueue_many([lonnymq.NewMessage(channel='a', payload=1)] * 1000)",
    )
    with psycopg.connect(released_dsn, autocommit=True) as connection:
        connection.execute("analyze lonnymq.message")
        before = describe(connection, "lonnymq")
        out = run(releases.third, released_dsn, CLI.format(["migrate", "--plan", "--dsn", released_dsn]))
        lines = out.splitlines()
        assert lines[0] == "queue 'lonnymq' is at version 1, outdated; this client has 4"
        assert lines[1].startswith(
            "1. migrations/0002_add_note.sql: ACCESS EXCLUSIVE lock on message (about 1,000 rows,"
        )
        assert lines[2].startswith(
            "2. migrations/0003_index_note.sql: build an index on message (about 1,000 rows,"
        )
        assert "outside a transaction, in about 100ms if that is in memory" in lines[2]
        assert lines[3].startswith("3. replace all functions and views: no lock on tables")
        assert lines[4].startswith("4. migrations/0004_drop_spare.sql: ACCESS EXCLUSIVE lock on message")
        assert describe(connection, "lonnymq") == before
    document = json.loads(
        run(releases.third, released_dsn, CLI.format(["migrate", "--plan", "--json", "--dsn", released_dsn]))
    )
    assert [phase["kind"] for phase in document["plan"]] == ["expand", "index", "switch", "contract"]


def test_a_contract_is_the_last_step_and_excludes_only_clients_of_two_versions_ago(
    releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    spare = "select count(*) from pg_attribute where attrelid = 'message'::regclass and attname = 'spare'"
    run(releases.later, released_dsn, "queue.migrate()")
    assert connection.execute(spare).fetchone() == (1,)
    with psycopg.connect(released_dsn) as holder:
        holder.execute("select count(*) from lonnymq.message")
        code = "try:\n  queue.migrate(retry_for_s=0)\nexcept lonnymq.Busy as error:\n  print(error)"
        assert "0004_drop_spare.sql did not get a lock" in run(releases.third, released_dsn, code)
    # The functions are those of the third release already, and the second one works.
    assert schema_state(releases.third, released_dsn) == SchemaState.CURRENT
    run(releases.later, released_dsn, "queue.enqueue('a', 1)")
    run(releases.third, released_dsn, "queue.migrate()")
    assert connection.execute(spare).fetchone() == (0,)
    for release in (releases.later, releases.third):
        run(release, released_dsn, "queue.enqueue('a', 1)\n[message] = queue.dequeue()\nmessage.complete()")
    assert schema_state(releases.released, released_dsn) == SchemaState.INCOMPATIBLE


def test_roles_get_what_the_new_version_adds_to_their_kind(
    releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    worker, reader, partial, tenant = (f"upgrade_{kind}_{uuid.uuid4().hex[:8]}" for kind in "wrpt")
    may = "select has_function_privilege(%s, 'message_count_noted()', 'execute')"
    try:
        for role, kind in ((worker, "worker"), (reader, "reader"), (partial, "worker")):
            connection.execute(f"create role {role}".encode())
            connection.execute("select queue_grant(%s, %s)", [role, kind])
        connection.execute(f"create role {tenant}".encode())
        connection.execute("select queue_grant(%s, 'tenant', p_prefix => 'acme/')", [tenant])
        confined = connection.execute("select * from tenant").fetchall()
        connection.execute(f"revoke execute on function queue_event() from {partial}".encode())
        run(releases.later, released_dsn, "queue.migrate()")
        allowed = [connection.execute(may, [role]).fetchone() for role in (worker, reader, partial, tenant)]
        assert allowed == [(True,), (False,), (False,), (False,)]
        assert connection.execute("select * from tenant").fetchall() == confined
    finally:
        for role in (worker, reader, partial, tenant):
            connection.execute(f"drop owned by {role}; drop role {role}".encode())


def test_a_migration_in_the_callers_transaction_is_one_transaction(
    releases: Releases, released_dsn: str
) -> None:
    code = (
        "import psycopg\nwith psycopg.connect(sys.argv[1] if sys.argv[1:] else "
        f"{released_dsn!r}) as connection:\n  queue.migrate(connection=connection)\n  connection.rollback()"
    )
    run(releases.later, released_dsn, code)
    assert schema_state(releases.released, released_dsn) == SchemaState.CURRENT
    run(releases.later, released_dsn, code.replace("connection.rollback()", "connection.commit()"))
    assert schema_state(releases.later, released_dsn) == SchemaState.CURRENT
    assert run(releases.later, released_dsn, "print(queue.plan_migration())").count("MigrationPhase(") == 1
