"""Invariant 8: killing the server with SIGKILL under load, with fsync on, loses nothing committed."""

import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.faults.logged_load import produce_into, read_logs, work_into
from tests.forked import FORK_SERVER
from tests.races.load import session
from tests.races.sessions import check, drain, value

pytestmark = pytest.mark.fault

LEASE_MS = 1500


def test_no_committed_message_is_lost_when_the_server_is_killed(
    own_server: Callable[..., EmbeddedServer], tmp_path: Path
) -> None:
    server = own_server(fsync=True)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
        connection.execute("""select lonnymq.channel_set('channel 1', '{"max_concurrency": 2}')""")
    producer_logs: list[str] = []
    worker_logs: list[str] = []
    for crash in range(2):
        logs = [
            str(tmp_path / f"{crash} {name}") for name in ("created 0", "created 1", "worked 0", "worked 1")
        ]
        producer_logs += logs[:2]
        worker_logs += logs[2:]
        load_and_kill(server, logs)
        server.start()
        with session(server.dsn) as connection:
            assert check(connection) == []
    with session(server.dsn) as connection:
        connection.execute("update lonnymq.lease set unlock_at = 0")
        drained = [one.id for one in drain(connection)]
        assert value(connection, "select count(*) from message") == 0
        assert check(connection) == []
    lines = read_logs(*worker_logs)
    completed, begun = {one for one in lines if one > 0}, {-one for one in lines if one < 0}
    created = set(read_logs(*producer_logs))
    assert len(created) > 100
    assert len(drained) == len(set(drained))
    assert not completed & set(drained), "a confirmed completion was lost"
    # Each message is confirmed as completed, or its completion had begun, or it was found again.
    assert created - completed - begun - set(drained) == set()


def load_and_kill(server: EmbeddedServer, logs: list[str]) -> None:
    roles = [
        FORK_SERVER.Process(target=produce_into, args=[server.dsn, logs[0], 0]),
        FORK_SERVER.Process(target=produce_into, args=[server.dsn, logs[1], 1]),
        FORK_SERVER.Process(target=work_into, args=[server.dsn, logs[2], LEASE_MS]),
        FORK_SERVER.Process(target=work_into, args=[server.dsn, logs[3], LEASE_MS]),
    ]
    for role in roles:
        role.start()
    for log in logs:
        wait_for_file(log)
    time.sleep(1)
    server.kill()
    for role in roles:
        role.join(20)
        assert role.exitcode == 0


def wait_for_file(path: str) -> None:
    until = time.monotonic() + 20
    while not (Path(path).exists() and Path(path).stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_lease_lost_in_a_crash_is_redelivered_with_a_new_token(
    own_server: Callable[..., EmbeddedServer],
) -> None:
    """The dequeue is not durable: after the crash the lease may be gone, but not the message."""
    server = own_server(fsync=True, settings={"wal_writer_delay": "10s"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
    with session(server.dsn) as connection:
        connection.execute("select message_create('a', 'x')")
        stale = connection.execute(
            "select message_id, token, attempt from message_dequeue(p_is_durable => false)"
        ).fetchone()
        assert stale is not None
        server.kill()
    server.start()
    with session(server.dsn) as connection:
        was_lost = value(connection, "select count(*) from lease") == 0
        connection.execute("update lease set unlock_at = 0")
        fresh = connection.execute("select message_id, token, attempt from message_dequeue()").fetchone()
        assert fresh is not None
        assert fresh[0] == stale[0]
        assert fresh[1] != stale[1]
        assert fresh[2] == (1 if was_lost else 2)
        for outcome, (id_, token, _) in [("lease_lost", stale), ("completed", fresh)]:
            answer = value(
                connection, "select outcome from message_complete(array[%s], array[%s])", id_, token
            )
            assert answer == outcome
        assert check(connection) == []
