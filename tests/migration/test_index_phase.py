"""An index on a table in use is built while calls continue, and again if that was cut off."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import Queue, SchemaState
from lonnymq.embedded import binaries
from tests.migration.fleet import TIMEOUT_S, Fleet, Releases, eventually, run, schema_state

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BUILDING = (
    "select pid from pg_stat_activity where datname = current_database() and state = 'active'"
    " and query like 'create index concurrently%' and wait_event_type = 'Lock'"
)
IS_VALID = "select indisvalid from pg_index where indexrelid = to_regclass('message_note_ix')"
WAITS_TO_DROP = (
    "select true from pg_locks where relation = 'message'::regclass and mode = 'AccessExclusiveLock'"
    " and not granted"
)
RECORDED = "select array_agg(version order by version) from migration"
TRY = "try:\n  queue.migrate(retry_for_s={})\nexcept lonnymq.Busy as error:\n  print(error)"


def one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row and row[0]


def test_an_index_is_built_beside_an_open_transaction_while_calls_continue(
    fleet: Fleet, releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    """It waits for the open transaction, and nobody waits for it: each call gives up a lock after 20 s."""
    run_first_phase(releases, released_dsn, connection)
    old = [fleet.start(releases.released, role) for role in ("producer", "worker")]
    with psycopg.connect(released_dsn) as holder:
        holder.execute("select lonnymq.message_create(p_channel => 'held', p_content => '1')")
        migration = fleet.start(releases.later, "migrate")
        eventually(lambda: one(connection, BUILDING), "the index waits for the open transaction")
        fleet.wait_for_progress(*old, by=50)
        assert migration.poll() is None
        assert one(connection, IS_VALID) is False
    assert migration.wait(TIMEOUT_S) == 0
    assert one(connection, IS_VALID) is True
    assert schema_state(releases.later, released_dsn) == SchemaState.CURRENT
    fleet.stop(*old)


def test_an_index_that_was_not_built_to_the_end_is_dropped_and_built_again(
    fleet: Fleet, releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    run_first_phase(releases, released_dsn, connection)
    with psycopg.connect(released_dsn) as holder, Queue(released_dsn) as queue:
        holder.execute("select lonnymq.message_create(p_channel => 'held', p_content => '1')")
        first = fleet.start(releases.later, "migrate")
        eventually(lambda: one(connection, BUILDING), "the index is being built")
        # As in a crash: neither the client nor the server can tidy up.
        first.send_signal(signal.SIGKILL)
        first.wait()
        backend = one(connection, BUILDING)
        connection.execute("select pg_terminate_backend(%s)", [backend])
        eventually(lambda: one(connection, BUILDING) is None, "the server has given up")
        left = one(connection, "select 'message_note_ix'::regclass::oid")
        assert one(connection, IS_VALID) is False
        assert one(connection, RECORDED) == [1, 2]
        # The old version works meanwhile.
        queue.enqueue("a", 1)
        [message] = queue.dequeue()
        assert message.complete() == "completed"
        assert queue.check() == []
        # What is left cannot be dropped beside the open transaction, which has used the table.
        refused = run(releases.later, released_dsn, TRY.format(0))
        assert "0003_index_note.sql did not build its index on message" in refused
        assert f"pid {holder.info.backend_pid} (postgres," in refused
    assert run(releases.later, released_dsn, "print(queue.migrate().state)") == SchemaState.CURRENT
    assert one(connection, IS_VALID) is True
    assert one(connection, "select 'message_note_ix'::regclass::oid") != left
    assert one(connection, RECORDED) == [1, 2, 3]


def test_an_index_that_the_server_built_after_the_client_was_killed_is_kept(
    fleet: Fleet, releases: Releases, released_dsn: str, connection: psycopg.Connection[Any]
) -> None:
    run_first_phase(releases, released_dsn, connection)
    with psycopg.connect(released_dsn) as holder:
        holder.execute("select lonnymq.message_create(p_channel => 'held', p_content => '1')")
        first = fleet.start(releases.later, "migrate")
        eventually(lambda: one(connection, BUILDING), "the index is being built")
        first.send_signal(signal.SIGKILL)
        first.wait()
        # Another process migrates meanwhile: it must neither use nor drop what the server still builds.
        second = fleet.start(releases.later, "migrate")
        left = one(connection, "select 'message_note_ix'::regclass::oid")
        eventually(lambda: one(connection, WAITS_TO_DROP), "the second one asks for the lock")
        assert second.poll() is None
    assert second.wait(TIMEOUT_S) == 0
    assert one(connection, "select 'message_note_ix'::regclass::oid") == left
    assert one(connection, IS_VALID) is True
    assert one(connection, RECORDED) == [1, 2, 3]


def test_psql_can_run_the_script_and_again_after_it_was_cut_off(
    releases: Releases, released_dsn: str, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    psql = binaries.find("auto").program("psql")
    script = run(releases.later, released_dsn, "print(queue.sql(version=1))")
    first, rest = script.split("commit;", 1)
    connection.execute(f"{first}commit;".encode())
    assert schema_state(releases.released, released_dsn) == SchemaState.CURRENT
    # An index that was not built to the end.
    connection.execute("create index message_note_ix on message (note)")
    connection.execute(
        "update pg_index set indisvalid = false where indexrelid = 'message_note_ix'::regclass"
    )
    file = tmp_path / "migrate.sql"
    file.write_text(f"{first}commit;{rest}", encoding="utf-8")
    command = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", released_dsn, "-f", str(file)]
    for _ in range(2):
        subprocess.run(command, check=True, capture_output=True)
    assert schema_state(releases.later, released_dsn) == SchemaState.CURRENT
    assert one(connection, IS_VALID) is True


def run_first_phase(releases: Releases, dsn: str, connection: psycopg.Connection[Any]) -> None:
    """Migrate until the index is next."""
    script = run(releases.later, dsn, "print(queue.sql(version=1))")
    connection.execute(f"{script.partition('commit;')[0]}commit;".encode())
    connection.execute("set search_path to lonnymq")
