import contextlib
import os
import re
import signal
import stat
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from lonnymq.embedded import AlreadyRunning, DataDirRefused, EmbeddedServer, account, embedded, postmaster

IS_BUSY = "select exists (select from pg_stat_activity where state = 'active' and query like 'do %')"


def test_data_survives_between_servers(ask, open_dir):
    data_dir = open_dir / "missing" / "parents" / "data"
    with embedded(data_dir) as server:
        assert ask(server.dsn, "show fsync") == "on"
        ask(server.dsn, "create table kept as select 7 as seven")
        assert server.log_path == data_dir / "server.log"
    assert sorted(path.name for path in data_dir.parent.iterdir()) == ["data"]
    with embedded(data_dir, port=0) as server:
        assert ask(server.dsn, "select seven from kept") == 7
        server.stop()
        server.start()
        assert ask(server.dsn, "select seven from kept") == 7


@pytest.mark.parametrize("mode", ["sigkill", "immediate"])
def test_a_crashed_server_recovers_what_was_committed(mode, ask, kept_dir, is_gone):
    with embedded(kept_dir) as server:
        ask(server.dsn, "create table kept as select 7 as seven")
        former_dsn, former_pid = server.dsn, server.pid
        server.kill(mode)
        assert is_gone(former_pid)
        assert not server.is_running
        server.start()
        assert server.dsn == former_dsn
        assert ask(server.dsn, "select seven from kept") == 7
        assert "was not properly shut down; automatic recovery" in server.log_path.read_text()


def test_kill_also_kills_busy_backends(kept_dir, is_gone):
    with embedded(kept_dir, fsync=False) as server:
        connection = psycopg.connect(server.dsn, autocommit=True)
        backend = connection.info.backend_pid

        def spin() -> None:
            with pytest.raises(psycopg.OperationalError):
                connection.execute("do $$ begin loop end loop; end $$")

        thread = threading.Thread(target=spin)
        thread.start()
        server.kill()
        assert is_gone(backend)
        thread.join()
        connection.close()
        server.start()


def test_a_killed_postmaster_restarts_when_its_backends_have_ended(ask, kept_dir, eventually):
    busy = "do $$ begin while clock_timestamp() < now() + interval '1 second' loop end loop; end $$"
    with embedded(kept_dir, fsync=False) as server:
        with contextlib.closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
            connection.pgconn.send_query(busy.encode())
            eventually(lambda: ask(server.dsn, IS_BUSY))
            os.kill(server.pid, signal.SIGKILL)
            eventually(lambda: not server.is_running)
            server.start()
        assert "pre-existing shared memory block" in server.log_path.read_text()
        assert ask(server.dsn) == 1


def test_a_stale_pid_file_with_a_reused_pid_does_not_prevent_a_start(ask, kept_dir):
    server = embedded(kept_dir, fsync=False)
    server.kill()
    # It runs as the server's user: only then does PostgreSQL take it for a running postmaster.
    other = subprocess.Popen(["sleep", "60"], **account.choose(None).popen_options)
    try:
        pid_file = server.data_dir / postmaster.PID_FILE
        pid_file.write_text(re.sub(r"^\d+", str(other.pid), pid_file.read_text()))
        server.stop()
        with embedded(kept_dir, fsync=False) as again:
            assert ask(again.dsn) == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_starting_a_running_server_again_names_the_running_one(ask, kept_dir, run_python):
    with embedded(kept_dir, fsync=False) as server:
        with pytest.raises(AlreadyRunning, match=f"pid {server.pid}, dsn postgresql://") as caught:
            embedded(kept_dir)
        assert (caught.value.pid, caught.value.dsn) == (server.pid, server.dsn)
        code = "import sys; from lonnymq.embedded import embedded; embedded(sys.argv[1])"
        process = run_python(code, str(kept_dir), stderr=subprocess.STDOUT)
        assert f"AlreadyRunning: a server is already running in {server.data_dir}" in process.communicate()[0]
        assert ask(server.dsn) == 1


def test_of_two_concurrent_first_starts_one_is_refused(open_dir):
    outcomes: list[EmbeddedServer | AlreadyRunning] = []

    def open_it() -> None:
        try:
            outcomes.append(embedded(open_dir / "data", fsync=False))
        except AlreadyRunning as error:
            outcomes.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AlreadyRunning", "EmbeddedServer"]
    for outcome in outcomes:
        if isinstance(outcome, EmbeddedServer):
            outcome.stop()
    assert [path.name for path in open_dir.iterdir()] == ["data"]


def test_a_directory_with_other_files_is_refused_and_unchanged(open_dir):
    (open_dir / "thesis.txt").write_text("years of work")
    before = _shape(open_dir)
    with pytest.raises(DataDirRefused, match=re.escape(str(open_dir))):
        embedded(open_dir)
    assert _shape(open_dir) == before
    not_ours = open_dir / "not_ours"
    not_ours.mkdir(mode=0o700)
    _give_to_server_user(not_ours)
    (not_ours / "thesis.txt").write_text("years of work")
    with pytest.raises(DataDirRefused, match="not empty and is not a PostgreSQL data directory"):
        embedded(not_ours)
    assert _shape(not_ours).keys() == {"", "thesis.txt"}


def test_a_file_is_refused(open_dir):
    (open_dir / "data").write_text("")
    with pytest.raises(DataDirRefused, match="is not a directory"):
        embedded(open_dir / "data")


@pytest.mark.parametrize("mode", [0o700, 0o750])
def test_an_empty_directory_keeps_its_owner_and_mode(mode, ask, open_dir):
    data_dir = open_dir / "data"
    data_dir.mkdir()
    data_dir.chmod(mode)
    _give_to_server_user(data_dir)
    before = _shape(open_dir)
    with embedded(data_dir, fsync=False) as server:
        assert ask(server.dsn) == 1
    after = _shape(open_dir)
    assert {name: after[name] for name in before} == before


def test_an_empty_directory_with_a_wrong_mode_is_refused_and_unchanged(open_dir):
    data_dir = open_dir / "data"
    data_dir.mkdir(mode=0o755)
    _give_to_server_user(data_dir)
    before = _shape(open_dir)
    with pytest.raises(DataDirRefused, match="mode 0755"):
        embedded(data_dir)
    assert _shape(open_dir) == before


def test_a_cluster_of_another_major_version_is_refused(kept_dir):
    major = (kept_dir / "PG_VERSION").read_text().strip()
    (kept_dir / "PG_VERSION").write_text("9\n")
    with pytest.raises(DataDirRefused, match=f"made by PostgreSQL 9, .* PostgreSQL {major}"):
        embedded(kept_dir)


def _shape(root: Path) -> dict[str, tuple[int, int]]:
    """Owner and mode of the directory and of everything in it."""
    paths = [root, *root.rglob("*")]
    return {
        str(path.relative_to(root)).lstrip("."): (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode))
        for path in paths
    }


def _give_to_server_user(path: Path) -> None:
    account.choose(None).give_ownership(path)
