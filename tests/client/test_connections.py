"""Connections: where they come from, and what happens when they break."""

import contextlib
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql
from psycopg_pool import ConnectionPool

from lonnymq import (
    ClientSettings,
    ConnectionLost,
    LonnyError,
    NewMessage,
    NotPermitted,
    Queue,
    SchemaMissing,
    SchemaTooOld,
    embedded,
)
from lonnymq.calls import queue as queue_calls
from lonnymq.embedded import EmbeddedServer
from lonnymq.model.acknowledge import ACTIONS, COMPLETE
from tests.conftest import Connect, Database

Waits = Callable[[str, str], bool]
TERMINATE = (
    "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database()"
    " and pid <> pg_backend_pid() and application_name = 'lonnymq'"
)
HASTY = ClientSettings(retry_for_s=0.5)


def test_a_callers_pool_is_used_and_left_open(dsn: str) -> None:
    with ConnectionPool(dsn, min_size=1, max_size=2, open=True) as pool:
        with Queue(pool) as queue:
            queue.enqueue("a", 1)
            assert queue.dequeue(wait=1)[0].complete() == "completed"
            assert len(queue.dequeue(wait=0.1)) == 0
        with pool.connection() as connection:
            assert not connection.autocommit
            assert connection.execute("select 1").fetchone() == (1,)


def test_a_callers_function_makes_the_connections(dsn: str) -> None:
    made: list[psycopg.Connection[Any]] = []

    def make() -> psycopg.Connection[Any]:
        made.append(psycopg.connect(dsn, application_name="theirs"))
        return made[-1]

    with Queue(make) as queue:
        queue.enqueue("a", 1)
        assert queue.dequeue()[0].complete() == "completed"
        assert len(queue.dequeue(wait=0.1)) == 0
    assert made
    assert all(connection.closed for connection in made)


def test_a_connection_of_a_callers_function_that_cannot_be_used_is_closed(dsn: str) -> None:
    made: list[psycopg.Connection[Any]] = []

    def make() -> psycopg.Connection[Any]:
        made.append(psycopg.connect(dsn))
        made[-1].execute("select 1")
        return made[-1]

    with Queue(make) as queue, pytest.raises(psycopg.ProgrammingError, match="INTRANS"):
        queue.status()
    assert made
    assert all(connection.closed for connection in made)


def test_a_callers_pool_gets_back_a_connection_that_is_still_busy(dsn: str) -> None:
    with ConnectionPool(dsn, min_size=1, max_size=1, open=True) as pool, Queue(pool) as queue:
        for statement in ("begin", "begin; select 1/0", "copy (select 1) to stdout"):
            with queue.caller.source.connection() as connection:
                connection.pgconn.exec_(statement.encode())
            queue.enqueue("a", 1)
        assert queue.status().waiting == 3


def test_a_closed_queue_says_so(dsn: str) -> None:
    queue = Queue(dsn)
    queue.enqueue("a", 1)
    queue.close()
    queue.close()
    with pytest.raises(LonnyError, match="this queue is closed"):
        queue.enqueue("a", 1)


@pytest.mark.parametrize("rest", ["", "queue.queue = queue", "queue.queue = queue; del queue; gc.collect()"])
@pytest.mark.parametrize("call", ["status()", "dequeue(wait=0.5)"])
@pytest.mark.parametrize("kind", ["Queue", "AsyncQueue"])
def test_a_queue_that_is_never_closed_leaves_no_warning(dsn: str, kind: str, call: str, rest: str) -> None:
    # Unlike asyncio.run(), this says nothing to what was left half done in the loop.
    runs = {
        "Queue": f"queue.{call}",
        "AsyncQueue": f"loop = asyncio.new_event_loop(); loop.run_until_complete(queue.{call}); loop.close()",
    }
    program = f"import asyncio, gc, sys, lonnymq; queue = lonnymq.{kind}(sys.argv[1]); {runs[kind]}; {rest}"
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program, dsn]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_unreachable_server_is_told_as_such() -> None:
    with Queue("postgresql://nobody@127.0.0.1:1/none", settings=HASTY) as queue:
        with pytest.raises(ConnectionLost, match=r"nothing was sent \(.*refused") as caught:
            queue.enqueue("a", 1)
    assert not caught.value.may_have_happened


def test_an_exhausted_pool_is_told_as_such(dsn: str) -> None:
    with Queue(dsn, settings=ClientSettings(pool_max_size=1, retry_for_s=0.2)) as queue:
        with queue.caller.source.connection():
            with pytest.raises(ConnectionLost, match="all 1 connections of this client were in use"):
                queue.enqueue("a", 1)
        queue.enqueue("a", 1)


def test_a_missing_queue_says_what_to_do(database: Database) -> None:
    with Queue(database(is_empty=True)) as queue:
        with pytest.raises(SchemaMissing, match=r"run install\(\)"):
            queue.enqueue("a", 1)
        queue.install()
        queue.enqueue("a", 1)


def test_an_outdated_queue_says_what_to_do(dsn: str, connect: Connect) -> None:
    connect().execute("drop function queue_horizon; comment on table migration is 'lonnymq of yesterday'")
    with Queue(dsn) as queue:
        with pytest.raises(SchemaTooOld, match=r"run migrate\(\)"):
            queue.caller.perform(queue_calls.horizon())
        queue.migrate()
        queue.caller.perform(queue_calls.horizon())


def test_an_installer_without_the_right_to_is_told_so(dsn: str, connect: Connect) -> None:
    role = f"installer_{uuid.uuid4().hex[:12]}"
    connect().execute(sql.SQL("create role {} login password 'secret'").format(sql.Identifier(role)))
    with Queue(conninfo.make_conninfo(dsn, user=role, password="secret"), schema="elsewhere") as queue:
        with pytest.raises(NotPermitted, match="permission denied for database"):
            queue.install()
    connect().execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_a_lost_connection_can_be_told_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(ConnectionLost("gone", may_have_happened=False)))
    assert (str(error), error.may_have_happened) == ("gone", False)


def test_idle_connections_that_the_server_closed_are_not_used(dsn: str, connect: Connect) -> None:
    with Queue(dsn) as queue:
        for _ in range(3):
            queue.enqueue("a", 1)
            assert connect().execute(TERMINATE).rowcount >= 1
        assert queue.status().waiting == 3


def test_prepared_statements_can_be_turned_off(dsn: str) -> None:
    with Queue(dsn, settings=ClientSettings(prepare_threshold=None, pool_max_size=1)) as queue:
        for _ in range(10):
            queue.enqueue("a", 1)
        with queue.caller.source.connection() as connection:
            assert connection.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)


def test_dead_peers_are_noticed(dsn: str) -> None:
    with Queue(dsn) as queue, queue.caller.source.connection() as connection:
        options = conninfo.conninfo_to_dict(connection.info.dsn)
        assert (options["keepalives"], options["tcp_user_timeout"]) == ("1", "30000")


@pytest.fixture
def cut_in(dsn: str, connect: Connect, waits: Waits) -> Iterator[Callable[..., Any]]:
    """Runs a call, and cuts its connection while a lock keeps it inside the server."""
    with ThreadPoolExecutor() as threads:

        def cut_in(table: str, call: Callable[[], Any]) -> Any:
            holder = connect()
            holder.execute("begin")
            holder.execute(f"lock table {table} in access exclusive mode".encode())
            future = threads.submit(call)
            while not waits(dsn, "message_"):
                assert not future.done(), f"it did not meet the lock: {future}"
                time.sleep(0.01)
            holder.execute(TERMINATE)
            holder.execute("rollback")
            return future.result(30)

        yield cut_in


def test_a_lost_create_without_a_key_is_not_repeated(dsn: str, cut_in: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        with pytest.raises(ConnectionLost, match="may or may not have taken effect") as caught:
            cut_in("message", lambda: queue.enqueue("a", 1))
        assert caught.value.may_have_happened
        assert queue.status().waiting == 0


def test_a_lost_create_with_a_key_is_repeated(dsn: str, cut_in: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        assert cut_in("message", lambda: queue.enqueue("a", 1, key="k")).outcome == "created"
        many = [NewMessage(channel="a", payload=n, key=f"k{n}") for n in range(3)]
        assert len(cut_in("message", lambda: queue.enqueue_many(many))) == 3
        assert queue.status().waiting == 4


@pytest.mark.parametrize("end", [*(one.name for one in ACTIONS if one is not COMPLETE), "heartbeat"])
def test_a_lost_acknowledgement_is_repeated(dsn: str, cut_in: Callable[..., Any], end: str) -> None:
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        assert cut_in("lease", getattr(message, end)) in ("extended", *(action.done for action in ACTIONS))


def test_a_completion_outlasts_a_short_lock_on_the_table(dsn: str, connect: Connect) -> None:
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        holder = connect()
        holder.execute("begin")
        holder.execute("lock table lease in access exclusive mode")
        release = threading.Timer(0.2, lambda: holder.execute("rollback"))
        release.start()
        assert message.complete() == "completed"
        release.join()


def test_a_lost_dequeue_is_repeated(dsn: str, cut_in: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        assert len(cut_in("turn", queue.dequeue)) == 1


def test_a_call_lost_inside_the_callers_transaction_has_no_effect(
    dsn: str, connect: Connect, cut_in: Callable[..., Any]
) -> None:
    with Queue(dsn) as queue, psycopg.connect(dsn, application_name="lonnymq") as connection:
        with pytest.raises(ConnectionLost, match="rolled back") as caught:
            cut_in("message", lambda: queue.enqueue("a", 1, connection=connection))
        assert not caught.value.may_have_happened


class Line:
    """A connection to the server that can fall silent: requests get there, replies do not come back."""

    def __init__(self, dsn: str) -> None:
        self._options = conninfo.conninfo_to_dict(dsn)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.swallow: bytes | None = None
        self.dsn = conninfo.make_conninfo(dsn, host="127.0.0.1", port=self._door.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()
        for pair in self._pairs:
            self._hang_up(pair)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._door.accept()[0]
                pair = (near, self._far())
                self._pairs.append(pair)
                for source, target in (pair, pair[::-1]):
                    threading.Thread(target=self._pass, args=(source, target, pair), daemon=True).start()

    def _far(self) -> socket.socket:
        host, port = str(self._options["host"]), int(str(self._options.get("port") or 5432))
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(Path(host) / f".s.PGSQL.{port}"))
        return far

    def _pass(self, source: socket.socket, target: socket.socket, pair: Any) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                # The reply that holds this word: the server has committed, the client never hears of it.
                if self.swallow is not None and source is pair[1] and self.swallow in data:
                    self.swallow = None
                    break
                target.sendall(data)
        self._hang_up(pair)

    def _hang_up(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.fixture
def line(dsn: str) -> Iterator[Line]:
    line = Line(dsn)
    yield line
    line.close()


def test_a_create_whose_reply_is_lost_has_happened_and_is_told_so(dsn: str, line: Line) -> None:
    with Queue(line.dsn) as queue, Queue(dsn) as other:
        line.swallow = b"created"
        with pytest.raises(ConnectionLost) as caught:
            queue.enqueue("a", 1)
        assert caught.value.may_have_happened
        assert other.status().waiting == 1


def test_a_create_with_a_key_whose_reply_is_lost_finds_its_own_message(dsn: str, line: Line) -> None:
    with Queue(line.dsn) as queue, Queue(dsn) as other:
        line.swallow = b"created"
        created = queue.enqueue("a", 1, key="k")
        assert created.outcome == "duplicate"
        assert other.dequeue()[0].id == created.id


def test_a_completion_whose_reply_is_lost_is_not_reported_as_a_lost_lease(line: Line) -> None:
    with Queue(line.dsn) as queue:
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        # What was completed is not named.
        line.swallow = b"SELECT 0"
        with pytest.raises(ConnectionLost, match="the first attempt may have taken effect") as caught:
            message.complete()
        assert caught.value.may_have_happened


def test_a_dequeue_whose_reply_is_lost_is_delivered_after_the_lease(line: Line) -> None:
    with Queue(line.dsn) as queue:
        queue.enqueue("a", "the payload")
        line.swallow = b"the payload"
        assert len(queue.dequeue(lease_s=2)) == 0
        assert queue.dequeue(wait=30)[0].attempt == 2


def test_a_load_whose_connection_breaks_creates_nothing(dsn: str, line: Line) -> None:
    def broken() -> Iterator[NewMessage]:
        for n in range(20_000):
            if n == 10_000:
                line.close()
            yield NewMessage(channel="a", payload=b"x" * 100)

    with Queue(line.dsn, settings=HASTY) as queue, Queue(dsn) as other:
        with pytest.raises(ConnectionLost, match="no message was created") as caught:
            queue.copy_in(broken())
        assert not caught.value.may_have_happened
        assert other.status().waiting == 0


def test_calls_survive_a_restart_of_the_server(own_server: Callable[..., EmbeddedServer]) -> None:
    server = own_server(fsync=False)
    with Queue(server.dsn) as queue:
        queue.install()
        queue.enqueue("a", 1)
        assert len(queue.dequeue(wait=0.05, lease_s=0.001)) == 1
        restart = threading.Thread(target=server.restart)
        restart.start()
        assert queue.dequeue(wait=30)[0].complete() == "completed"
        restart.join()
        assert queue.dequeue().outcome == "empty"


def test_the_embedded_server_is_loaded_only_when_it_is_asked_for() -> None:
    assert callable(embedded)
    assert re.match(r"<module 'lonnymq.embedded'", repr(embedded))
