import os
import stat
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from lonnymq.embedded import EmbeddedError, EmbeddedServer, embedded


def test_a_temporary_server_works_and_leaves_nothing_behind(ask, is_gone):
    with embedded() as server:
        assert ask(server.dsn, "select current_user") == "postgres"
        assert ask(server.dsn, "show server_version").startswith(server.version)
        assert ask(server.dsn, "show server_encoding") == "UTF8"
        assert ask(server.dsn, "show listen_addresses") == ""
        assert "ready to accept connections" in server.log_path.read_text()
        pid, socket_dir, data_dir = server.pid, server.socket_dir, server.data_dir
        assert socket_dir is not None
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    assert is_gone(pid)
    assert not socket_dir.exists()
    assert not data_dir.parent.exists()
    assert not server.is_running


def test_stop_closes_open_connections_and_can_be_repeated():
    server = embedded(fsync=False)
    connection = psycopg.connect(server.dsn)
    server.stop()
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
    connection.close()
    with pytest.raises(EmbeddedError, match="removed by stop"):
        server.start()


def test_restart_keeps_data_settings_and_dsn(ask):
    with embedded(fsync=False, settings={"max_connections": "17", "app.name": "a = 'b'"}) as server:
        dsn = server.dsn
        ask(dsn, "create table kept as select 7 as seven")
        server.restart()
        assert server.dsn == dsn
        assert ask(dsn, "select seven from kept") == 7
        assert ask(server.dsn, "show max_connections") == "17"
        assert ask(server.dsn, "show app.name") == "a = 'b'"
        assert ask(server.dsn, "show fsync") == "off"


def test_four_servers_can_start_at_once(ask):
    with ThreadPoolExecutor(4) as pool:
        servers: list[EmbeddedServer] = list(pool.map(lambda _: embedded(port=0, fsync=False), range(4)))
    try:
        assert len({server.port for server in servers}) == 4
        assert [ask(server.dsn) for server in servers] == [1, 1, 1, 1]
    finally:
        for server in servers:
            server.stop()


def test_a_long_temporary_directory_does_not_break_the_socket(run_python, ask, open_dir):
    long_dir = open_dir / ("long" * 30)
    long_dir.mkdir(mode=0o755)
    code = "from lonnymq.embedded import *; s = embedded(); print(s.dsn); print(s.data_dir); input()"
    process = run_python(code, env={"TMPDIR": str(long_dir)})
    assert ask(process.stdout.readline().strip()) == 1
    assert process.stdout.readline().startswith(str(long_dir))
    process.communicate("\n")
    assert list(long_dir.iterdir()) == []


def test_libpqs_environment_variables_do_not_affect_the_server(run_python, ask):
    hostile = {
        "PGDATA": "/nowhere",
        "PGPORT": "1",
        "PGHOST": "nowhere",
        "PGOPTIONS": "-c nonsense=1",
        "LANG": "de",
    }
    code = "from lonnymq.embedded import embedded; s = embedded(fsync=False); print(s.dsn); input()"
    process = run_python(code, env=hostile)
    assert ask(process.stdout.readline().strip()) == 1
    process.communicate("\n")


def test_a_killed_temporary_server_leaves_no_shared_memory():
    def segments() -> set[str]:
        with open("/proc/sysvipc/shm") as table:
            return {line.split()[1] for line in table}

    server = embedded(fsync=False)
    own = server.data_dir.joinpath("postmaster.pid").read_text().splitlines()[6].split()[1]
    assert own in segments()
    server.kill()
    server.stop()
    assert own not in segments()


def test_a_forked_child_does_not_end_its_parents_server(run_python):
    code = """
import os, sys
from lonnymq.embedded import embedded
server = embedded(fsync=False)
if os.fork() == 0:
    server.stop()
    sys.exit()  # runs the child's atexit as well
os.wait()
print(server.is_running)
"""
    process = run_python(code)
    assert process.communicate()[0] == "True\n"


def test_a_server_stops_when_the_interpreter_exits(run_python, is_gone):
    code = "from lonnymq.embedded import embedded; s = embedded(fsync=False); print(s.pid, s.data_dir)"
    process = run_python(code)
    pid, data_dir = process.communicate()[0].split()
    assert is_gone(int(pid))
    assert not os.path.exists(data_dir)
