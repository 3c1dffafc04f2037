"""A queue of a newer version that excludes this client is not changed."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from psycopg import conninfo, sql

from lonnymq import NewMessage, Queue, SchemaTooNew
from lonnymq.client.aio import caller as aio_caller
from lonnymq.client.sync import caller as sync_caller
from lonnymq.schema import files
from tests.client.conftest import OpenConnection, OpenQueue
from tests.conftest import Connect

BREAK = "comment on table migration is 'lonnymq later 99 99'"
FINE = "comment on table migration is 'lonnymq fine 98 1'"
RESTORE = f"comment on table migration is 'lonnymq {files.fingerprint()} {files.latest_version()} 0'"


@pytest.fixture(autouse=True)
def restored(connect: Connect) -> Any:
    yield
    connect().execute(RESTORE)


CALLS: dict[str, Callable[..., Any]] = {
    "enqueue": lambda queue, **on: queue.enqueue("a", 1, **on),
    "enqueue_many": lambda queue, **on: queue.enqueue_many([NewMessage(channel="a", payload=1)], **on),
    "copy_in": lambda queue, **on: queue.copy_in([NewMessage(channel="a", payload=1)], **on),
    "dequeue": lambda queue, **on: queue.dequeue(**on),
    "status": lambda queue, **on: queue.status(**on),
    "set": lambda queue, **on: queue.channel("a").set(weight=2, **on),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_newer_queue_is_refused_by_every_call(
    connect: Connect, open_queue: OpenQueue, open_connection: OpenConnection, name: str
) -> None:
    open_queue().enqueue("a", "before")
    connect().execute(BREAK)
    with pytest.raises(SchemaTooNew, match="upgrade lonnymq"):
        CALLS[name](open_queue())
    with pytest.raises(SchemaTooNew, match="upgrade lonnymq"):
        CALLS[name](open_queue(), connection=open_connection())
    assert connect().execute("select count(*) from message").fetchone() == (1,)
    assert connect().execute("select count(*) from stage").fetchone() == (0,)
    assert connect().execute("select count(*) from lease").fetchone() == (0,)


def test_a_newer_queue_that_allows_this_client_is_used(connect: Connect, queue: Any) -> None:
    connect().execute(FINE)
    assert queue.enqueue("a", 1).outcome == "created"


def test_running_clients_notice_a_migration(
    connect: Connect, queue: Any, open_connection: OpenConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (aio_caller, sync_caller):
        assert module.CHECK_VERSION_S <= 60
        monkeypatch.setattr(module, "CHECK_VERSION_S", 0.0)
    queue.enqueue("a", 1)
    assert len(queue.dequeue(wait=0.1)) == 1
    assert len(queue.dequeue(wait=0.1)) == 0  # this time on the connection that listens
    connect().execute(BREAK)
    for call in (lambda: queue.enqueue("a", 1), lambda: queue.dequeue(wait=0.1), queue.status):
        with pytest.raises(SchemaTooNew):
            call()
    with pytest.raises(SchemaTooNew):
        queue.enqueue("a", 1, connection=open_connection())
    connect().execute(RESTORE)
    queue.enqueue("a", 1)


def test_a_new_connection_checks_the_version_again(connect: Connect, queue: Any) -> None:
    queue.enqueue("a", 1)
    connect().execute(BREAK)
    connect().execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'lonnymq'"
    )
    with pytest.raises(SchemaTooNew):
        queue.enqueue("a", 1)


@pytest.mark.parametrize("kind", ["producer", "worker", "reader", "operator"])
def test_every_kind_of_role_can_check_the_version(dsn: str, connect: Connect, kind: str) -> None:
    admin, name = connect(), f"lonnymq_{uuid.uuid4().hex[:8]}"
    role = sql.Identifier(name)
    admin.execute(sql.SQL("create role {} login").format(role))
    admin.execute("select queue_grant(%s, %s)", (name, kind))
    calls: dict[str, Callable[[Queue], Any]] = {
        "producer": lambda queue: queue.enqueue("a", 1),
        "worker": lambda queue: queue.dequeue(),
        "reader": lambda queue: queue.status(),
        "operator": lambda queue: queue.dequeue(),
    }
    try:
        with Queue(conninfo.make_conninfo(dsn, user=name)) as queue:
            calls[kind](queue)
        admin.execute(BREAK)
        with Queue(conninfo.make_conninfo(dsn, user=name)) as queue, pytest.raises(SchemaTooNew):
            calls[kind](queue)
    finally:
        admin.execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(role))
