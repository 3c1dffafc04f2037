"""Where connections come from, and what happens when they are lost."""

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
SHORT_RETRY = ClientSettings(retry_for_s=0.5)


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


def test_an_unusable_connection_from_a_callers_function_is_closed(dsn: str) -> None:
    made: list[psycopg.Connection[Any]] = []

    def make() -> psycopg.Connection[Any]:
        made.append(psycopg.connect(dsn))
        made[-1].execute("select 1")
        return made[-1]

    with Queue(make) as queue, pytest.raises(psycopg.ProgrammingError, match="INTRANS"):
        queue.status()
    assert made
    assert all(connection.closed for connection in made)


def test_a_busy_connection_is_returned_to_the_callers_pool(dsn: str) -> None:
    with ConnectionPool(dsn, min_size=1, max_size=1, open=True) as pool, Queue(pool) as queue:
        for statement in ("begin", "begin; select 1/0", "copy (select 1) to stdout"):
            with queue.caller.source.connection() as connection:
                connection.pgconn.exec_(statement.encode())
            queue.enqueue("a", 1)
        assert queue.status().waiting == 3


def test_a_call_on_a_closed_queue_is_refused(dsn: str) -> None:
    queue = Queue(dsn)
    queue.enqueue("a", 1)
    queue.close()
    queue.close()
    with pytest.raises(LonnyError, match="this queue is closed"):
        queue.enqueue("a", 1)


@pytest.mark.parametrize("rest", ["", "queue.queue = queue", "queue.queue = queue; del queue; gc.collect()"])
@pytest.mark.parametrize("call", ["status()", "dequeue(wait=0.5)"])
@pytest.mark.parametrize("kind", ["Queue", "AsyncQueue"])
def test_a_queue_that_is_never_closed_causes_no_warning(dsn: str, kind: str, call: str, rest: str) -> None:
    # Unlike asyncio.run(), this does not cancel unfinished tasks of the loop.
    # A busy machine may delay any step, about which -X dev would warn.
    loop = "loop = asyncio.new_event_loop(); loop.slow_callback_duration = 60"
    runs = {
        "Queue": f"queue.{call}",
        "AsyncQueue": f"{loop}; loop.run_until_complete(queue.{call}); loop.close()",
    }
    program = f"import asyncio, gc, sys, lonnymq; queue = lonnymq.{kind}(sys.argv[1]); {runs[kind]}; {rest}"
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program, dsn]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_unreachable_server_is_reported_as_such() -> None:
    with Queue("postgresql://nobody@127.0.0.1:1/none", settings=SHORT_RETRY) as queue:
        with pytest.raises(ConnectionLost, match=r"nothing was sent \(.*refused") as caught:
            queue.enqueue("a", 1)
    assert not caught.value.may_have_happened


def test_an_exhausted_pool_is_reported_as_such(dsn: str) -> None:
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


def test_an_install_without_permission_is_reported_as_such(dsn: str, connect: Connect) -> None:
    role = f"installer_{uuid.uuid4().hex[:12]}"
    connect().execute(sql.SQL("create role {} login password 'secret'").format(sql.Identifier(role)))
    with Queue(conninfo.make_conninfo(dsn, user=role, password="secret"), schema="elsewhere") as queue:
        with pytest.raises(NotPermitted, match="permission denied for database"):
            queue.install()
    connect().execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_connection_lost_can_be_sent_to_another_process() -> None:
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


def test_keepalives_are_enabled_by_default(dsn: str) -> None:
    with Queue(dsn) as queue, queue.caller.source.connection() as connection:
        options = conninfo.conninfo_to_dict(connection.info.dsn)
        assert (options["keepalives"], options["tcp_user_timeout"]) == ("1", "30000")


@pytest.fixture
def break_connection(dsn: str, connect: Connect, waits: Waits) -> Iterator[Callable[..., Any]]:
    """Runs a call, and breaks its connection while the call waits for a lock in the server."""
    with ThreadPoolExecutor() as threads:

        def break_connection(table: str, call: Callable[[], Any]) -> Any:
            holder = connect()
            holder.execute("begin")
            holder.execute(f"lock table {table} in access exclusive mode".encode())
            future = threads.submit(call)
            while not waits(dsn, "message_"):
                assert not future.done(), f"the call did not wait for the lock: {future}"
                time.sleep(0.01)
            holder.execute(TERMINATE)
            holder.execute("rollback")
            return future.result(30)

        yield break_connection


def test_a_lost_create_without_a_key_is_not_repeated(dsn: str, break_connection: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        with pytest.raises(ConnectionLost, match="may or may not have taken effect") as caught:
            break_connection("message", lambda: queue.enqueue("a", 1))
        assert caught.value.may_have_happened
        assert queue.status().waiting == 0


def test_a_lost_create_with_a_key_is_repeated(dsn: str, break_connection: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        assert break_connection("message", lambda: queue.enqueue("a", 1, key="k")).outcome == "created"
        many = [NewMessage(channel="a", payload=n, key=f"k{n}") for n in range(3)]
        assert len(break_connection("message", lambda: queue.enqueue_many(many))) == 3
        assert queue.status().waiting == 4


@pytest.mark.parametrize("end", [*(one.name for one in ACTIONS if one is not COMPLETE), "heartbeat"])
def test_a_lost_acknowledgement_is_repeated(dsn: str, break_connection: Callable[..., Any], end: str) -> None:
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        assert break_connection("lease", getattr(message, end)) in (
            "extended",
            *(action.done for action in ACTIONS),
        )


def test_a_completion_waits_while_its_table_is_briefly_locked(dsn: str, connect: Connect) -> None:
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


def test_a_lost_dequeue_is_repeated(dsn: str, break_connection: Callable[..., Any]) -> None:
    with Queue(dsn) as queue:
        queue.enqueue("a", 1)
        assert len(break_connection("turn", queue.dequeue)) == 1


def test_a_call_lost_inside_the_callers_transaction_has_no_effect(
    dsn: str, connect: Connect, break_connection: Callable[..., Any]
) -> None:
    with Queue(dsn) as queue, psycopg.connect(dsn, application_name="lonnymq") as connection:
        with pytest.raises(ConnectionLost, match="rolled back") as caught:
            break_connection("message", lambda: queue.enqueue("a", 1, connection=connection))
        assert not caught.value.may_have_happened


class LossyProxy:
    """A proxy in front of the server that can lose a reply: the request arrives, its reply does not."""

    def __init__(self, dsn: str) -> None:
        self._options = conninfo.conninfo_to_dict(dsn)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.drop_reply_with: bytes | None = None
        self.dsn = conninfo.make_conninfo(dsn, host="127.0.0.1", port=self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for pair in self._pairs:
            self._close_both(pair)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                pair = (client, self._connect())
                self._pairs.append(pair)
                for source, target in (pair, pair[::-1]):
                    threading.Thread(target=self._pass, args=(source, target, pair), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._options["host"]), int(str(self._options.get("port") or 5432))
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(Path(host) / f".s.PGSQL.{port}"))
        return server

    def _pass(self, source: socket.socket, target: socket.socket, pair: Any) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                # The server has committed, but the client does not get the reply that contains this word.
                if self.drop_reply_with is not None and source is pair[1] and self.drop_reply_with in data:
                    self.drop_reply_with = None
                    break
                target.sendall(data)
        self._close_both(pair)

    def _close_both(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@pytest.fixture
def proxy(dsn: str) -> Iterator[LossyProxy]:
    proxy = LossyProxy(dsn)
    yield proxy
    proxy.close()


def test_a_create_whose_reply_is_lost_may_have_happened(dsn: str, proxy: LossyProxy) -> None:
    with Queue(proxy.dsn) as queue, Queue(dsn) as other:
        proxy.drop_reply_with = b"created"
        with pytest.raises(ConnectionLost) as caught:
            queue.enqueue("a", 1)
        assert caught.value.may_have_happened
        assert other.status().waiting == 1


def test_a_create_with_a_key_whose_reply_is_lost_finds_its_own_message(dsn: str, proxy: LossyProxy) -> None:
    with Queue(proxy.dsn) as queue, Queue(dsn) as other:
        proxy.drop_reply_with = b"created"
        created = queue.enqueue("a", 1, key="k")
        assert created.outcome == "duplicate"
        assert other.dequeue()[0].id == created.id


def test_a_completion_whose_reply_is_lost_is_not_reported_as_a_lost_lease(proxy: LossyProxy) -> None:
    with Queue(proxy.dsn) as queue:
        queue.enqueue("a", 1)
        message = queue.dequeue()[0]
        # The reply to a successful complete has no rows.
        proxy.drop_reply_with = b"SELECT 0"
        with pytest.raises(ConnectionLost, match="the first attempt may have taken effect") as caught:
            message.complete()
        assert caught.value.may_have_happened


def test_messages_of_a_lost_reply_are_delivered_after_the_lease(proxy: LossyProxy) -> None:
    with Queue(proxy.dsn) as queue:
        queue.enqueue("a", "the payload")
        proxy.drop_reply_with = b"the payload"
        assert len(queue.dequeue(lease_s=2)) == 0
        assert queue.dequeue(wait=30)[0].attempt == 2


def test_a_load_whose_connection_is_lost_creates_nothing(dsn: str, proxy: LossyProxy) -> None:
    def messages() -> Iterator[NewMessage]:
        for n in range(20_000):
            if n == 10_000:
                proxy.close()
            yield NewMessage(channel="a", payload=b"x" * 100)

    with Queue(proxy.dsn, settings=SHORT_RETRY) as queue, Queue(dsn) as other:
        with pytest.raises(ConnectionLost, match="no message was created") as caught:
            queue.copy_in(messages())
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


def test_the_embedded_package_is_callable() -> None:
    assert callable(embedded)
    assert re.match(r"<module 'lonnymq.embedded'", repr(embedded))
