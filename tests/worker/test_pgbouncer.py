"""Workers and clients behind PgBouncer, without LISTEN and prepared statements in transaction mode."""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from lonnymq import (
    AsyncQueue,
    ClientSettings,
    ExitCode,
    NewMessage,
    Queue,
    SessionNotKept,
    WrongIsolationLevel,
)
from lonnymq.telemetry.monitor import Monitor, MonitorSettings
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import eventually

# As docs/howto/pgbouncer.md says.
CLIENT = {"listen": False, "prepare_threshold": None}
SESSIONS = 2
# In session mode, each connection of a worker has a session to itself.
SESSIONS_IN_SESSION_MODE = 20
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs PgBouncer: apt-get install pgbouncer")


@pytest.fixture
def mode() -> str:
    return "transaction"


@pytest.fixture
def bouncer(dsn: str, mode: str) -> Iterator[str]:
    """A DSN of the test's database through a PgBouncer of its own."""
    parameters = conninfo.conninfo_to_dict(dsn)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {name: parameters.get(name) for name in ("host", "port", "user", "password")}
    sessions = SESSIONS_IN_SESSION_MODE if mode == "session" else SESSIONS
    target = " ".join(f"{name}='{value}'" for name, value in given.items() if value)
    with tempfile.TemporaryDirectory(prefix="lonnymq-pgbouncer-") as home:
        # PgBouncer runs as another user, who must be able to read this directory.
        Path(home).chmod(0o755)
        file, log = Path(home, "pgbouncer.ini"), Path(home, "log")
        file.write_text(
            f"[databases]\n* = {target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = {sessions}\n"
            "max_client_conn = 100\n"
        )
        with log.open("wb") as output:
            command = [str(PROGRAM), *unprivileged_options(str(given["host"] or "")), str(file)]
            process = subprocess.Popen(command, stdout=output, stderr=output)
        through = conninfo.make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable")
        try:
            eventually(lambda: is_open(through) or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield through
        finally:
            process.terminate()
            process.wait()


def unprivileged_options(host: str) -> list[str]:
    """Return options to run as the owner of the server's socket directory, because root is refused."""
    if os.geteuid() != 0:
        return []
    owner = pwd.getpwuid(Path(host).stat().st_uid) if host.startswith("/") else pwd.getpwnam("nobody")
    return ["-u", owner.pw_name]


def is_open(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_workers_and_producers_share_few_sessions(
    bouncer: str, connect: Connect, start_worker: StartWorker
) -> None:
    workers = [
        start_worker(to=bouncer, concurrency=8, lease_s=4, client={**CLIENT, "poll_s": 0.05})
        for _ in range(2)
    ]
    with Queue(bouncer, settings=ClientSettings(**CLIENT)) as queue:  # type: ignore[arg-type]
        for seconds in (0, 0.01, 6):
            queue.enqueue_many(
                [NewMessage(channel=f"c{n}", payload={"do": "sleep", "seconds": seconds}) for n in range(10)]
            )
        eventually(lambda: sum(len(worker.events("end")) for worker in workers) == 30)
        eventually(lambda: queue.status().leased == 0)
        # Idle workers are woken by polling.
        queue.enqueue("a", {"do": "sleep", "seconds": 0})
        eventually(lambda: sum(len(worker.events("end")) for worker in workers) == 31)
        assert len(queue.dequeue(wait=0.2)) == 0
        found = connect().execute(
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid() and query like '%message_%' and backend_type = 'client backend'"
        )
        sessions = found.fetchone()
        assert sessions is not None
        assert 1 <= sessions[0] <= SESSIONS
        for worker in workers:
            assert worker.stop() == ExitCode.FINISHED
            assert "failed, trying again" not in worker.log_text()
            assert "lease_lost" not in worker.log_text()
        assert queue.status().waiting == 0


def test_without_the_settings_for_pgbouncer_the_error_names_them(
    bouncer: str, start_worker: StartWorker
) -> None:
    def preparing() -> Queue:
        return Queue(bouncer, settings=ClientSettings(prepare_threshold=0, pool_max_size=1))

    hint = r".*ClientSettings\(prepare_threshold=None, listen=False\)"
    with preparing() as first, preparing() as second, preparing() as third:
        first.status()
        with pytest.raises(SessionNotKept, match="already exists" + hint):
            second.status()
        with psycopg.connect(bouncer) as other, other.transaction():
            # This transaction holds the session that was used last, so the others get the next one.
            other.execute("select 1")
            with pytest.raises(SessionNotKept, match="does not exist" + hint):
                first.status()
            third.channel("a").explain()
            with pytest.raises(SessionNotKept, match="requires" + hint):
                first.status()
        # By now each session has a prepared statement with the name of a worker's first.
        worker = start_worker(to=bouncer, client={"prepare_threshold": 0})
        assert worker.wait_for_exit() == ExitCode.UNUSABLE
        assert "ClientSettings(prepare_threshold=None, listen=False)" in worker.log_text()
        assert "Traceback" not in worker.log_text()


def test_a_client_may_make_its_first_connections_at_the_same_time(bouncer: str) -> None:
    """PgBouncer refuses the settings that it asks for, so each of them connects again without."""

    async def connect_at_once() -> None:
        async with AsyncQueue(bouncer, settings=ClientSettings(**CLIENT)) as queue:  # type: ignore[arg-type]
            await asyncio.gather(*(queue.status() for _ in range(5)))

    asyncio.run(connect_at_once())


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_behind_a_pooler_no_session_stands_for_a_worker(
    bouncer: str, connect: Connect, start_worker: StartWorker
) -> None:
    worker = start_worker(to=bouncer)
    eventually(lambda: "a pooler is in between" in worker.log_text())
    with Queue(bouncer, settings=ClientSettings(**CLIENT)) as queue:  # type: ignore[arg-type]
        queue.enqueue("a", {"do": "sleep", "seconds": 0})
        worker.wait_for("end")
        assert connect().execute("select from worker").fetchall() == []
        locks = "select from pg_locks where locktype = 'advisory'"
        assert connect().execute(locks).fetchall() == []
        eventually(lambda: queue.status().leased == 0)
    assert worker.stop() == ExitCode.FINISHED
    assert "Traceback" not in worker.log_text()


def set_defaults(dsn: str, connect: Connect, **defaults: str) -> str:
    """Set defaults of the test's database, close PgBouncer's sessions, and return the database's name."""
    name = str(conninfo.conninfo_to_dict(dsn)["dbname"])
    for setting, value in defaults.items():
        connect().execute(f"alter database {name} set {setting} = '{value}'".encode())
    connect().execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    return name


@pytest.mark.parametrize("mode", ["session"])
def test_in_session_mode_the_defaults_of_a_database_do_not_matter(bouncer: str, connect: Connect) -> None:
    name = set_defaults(bouncer, connect, default_transaction_isolation="serializable", array_nulls="off")
    with Queue(bouncer) as queue:
        queue.enqueue_many([NewMessage(channel="a", payload=1), NewMessage(channel="a", payload=2, delay=0)])
        assert queue.complete(queue.dequeue(2, wait=1)) == ["completed", "completed"]
    connect().execute(f"alter database {name} reset all".encode())


def test_in_transaction_mode_sessions_of_other_clients_stay_unchanged(bouncer: str, connect: Connect) -> None:
    name = set_defaults(bouncer, connect, default_transaction_isolation="serializable")
    with Queue(bouncer, settings=ClientSettings(**CLIENT)) as queue:  # type: ignore[arg-type]
        queue.enqueue("a", 1)
        with pytest.raises(WrongIsolationLevel, match="READ COMMITTED"):
            queue.dequeue()
        with psycopg.connect(bouncer) as other:
            assert other.execute("show default_transaction_isolation").fetchone() == ("serializable",)
    connect().execute(f"alter database {name} reset all".encode())


def test_metrics_are_read_through_a_pooler_and_leave_no_setting_behind(bouncer: str) -> None:
    async def look_often() -> None:
        monitor = Monitor(bouncer, MonitorSettings(max_age_s=0, top=3))
        for _ in range(10):
            look = await monitor.look()
            assert look.reading is not None, look.error
        await monitor.close()

    asyncio.run(look_often())
    for _ in range(SESSIONS):
        with psycopg.connect(bouncer) as other:
            assert other.execute("show statement_timeout").fetchone() == ("0",)
