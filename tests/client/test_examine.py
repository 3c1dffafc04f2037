"""The examination behind `lonnymq doctor`, and scripts for installing by hand."""

import uuid
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq import InvalidArgument, Queue, SchemaState
from lonnymq.schema import files
from tests.client.conftest import OpenQueue
from tests.conftest import Connect, Database


def test_an_examination_covers_server_schema_tables_and_privileges(queue: Any) -> None:
    found = queue.examine()
    assert found.server.version_number >= 140000
    assert abs((datetime.now(UTC) - found.server.clock).total_seconds()) < 60
    assert {"autovacuum", "fsync", "max_connections"} <= found.server.settings.keys()
    assert found.schema.state is SchemaState.CURRENT
    assert found.privileges.is_owner
    assert {"message_create", "message_dequeue", "queue_check"} <= set(found.privileges.functions)
    assert {"message", "turn", "wake", "lease"} <= {table.name for table in found.tables}
    assert found.channels == ()


def test_an_examination_works_if_no_queue_is_installed(database: Database, open_queue: OpenQueue) -> None:
    found = open_queue(database(is_empty=True)).examine()
    assert found.schema.state is SchemaState.MISSING
    assert (found.privileges.is_there, found.tables) == (False, ())


def test_an_examination_works_without_privileges_and_as_a_reader(
    dsn: str, connect: Connect, open_queue: OpenQueue
) -> None:
    owner, name = connect(), f"lonnymq_{uuid.uuid4().hex[:8]}"
    owner.execute(sql.SQL("create role {} login password 'x'").format(sql.Identifier(name)))
    queue = open_queue(conninfo.make_conninfo(dsn, user=name, password="x"))
    try:
        found = queue.examine()
        assert (found.privileges.functions, found.privileges.is_owner) == ((), False)
        # Every role may read which version is installed.
        assert found.schema.state is SchemaState.CURRENT
        owner.execute("select queue_grant(%s, 'reader')", (name,))
        found = queue.examine()
        assert found.schema.state is SchemaState.CURRENT
        assert found.privileges.functions == ("queue_pulse",)
    finally:
        queue.close()
        owner.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        owner.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def test_overdue_channels_are_found(queue: Any, connect: Connect) -> None:
    queue.enqueue("acme", 1)
    queue.enqueue("later", 1, delay=3600)
    queue.channel("paused").pause()
    queue.enqueue("paused", 1)
    connection = connect()
    connection.execute(
        "update message set created_at = created_at - 120000, dequeue_at = dequeue_at - 120000"
    )
    found = queue.examine().channels
    assert {(one.channel, one.reason) for one in found} == {("acme", "ready"), ("paused", "paused")}
    assert all(119 < one.overdue_s < 1000 for one in found)


def test_activity_counters_grow(queue: Any) -> None:
    before = queue.activity()
    queue.enqueue("a", 1)
    queue.dequeue()[0].complete()
    after = queue.activity()
    assert after.at > before.at
    assert (after.created, after.leased, after.ended) >= (before.created, before.leased, before.ended)


def test_the_script_of_a_migration_brings_an_older_queue_up_to_date(database: Database) -> None:
    dsn = database()
    with psycopg.connect(dsn, autocommit=True) as connection, Queue(dsn) as queue:
        connection.execute("drop function lonnymq.queue_event()")
        connection.execute("comment on table lonnymq.migration is 'lonnymq of another day'")
        assert queue.schema_status().state is SchemaState.OUTDATED
        connection.execute(queue.sql(version=files.latest_version()).encode())
        assert queue.schema_status().state is SchemaState.CURRENT
        queue.enqueue("a", 1)
        assert len(queue.dequeue()) == 1
        for version in (0, 999):
            with pytest.raises(InvalidArgument, match="version"):
                queue.sql(version=version)
