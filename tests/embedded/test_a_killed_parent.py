"""However the parent ends, the server ends too, and temporary files are removed."""

import json
import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

STARTS_A_SERVER = """
import json, sys, time
from lonnymq.embedded import embedded
server = embedded(*sys.argv[1:])
watchdog = server._workspace.watchdog.pid
try:
    print(json.dumps([server.pid, watchdog, str(server.data_dir), str(server.socket_dir), server.dsn]))
    time.sleep(600)
except KeyboardInterrupt:
    print(server.is_running)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_temporary_server_is_removed_when_its_parent_is_killed(number, run_python, eventually, is_gone):
    parent = run_python(STARTS_A_SERVER)
    pid, watchdog, data_dir, socket_dir, _ = json.loads(parent.stdout.readline())
    parent.send_signal(number)
    eventually(lambda: is_gone(pid) and is_gone(watchdog))
    assert not Path(data_dir).parent.exists()
    assert not Path(socket_dir).exists()


def test_kept_data_is_shut_down_cleanly_and_can_be_reopened_at_once(run_python, kept_dir):
    parent = run_python(STARTS_A_SERVER, str(kept_dir))
    pid, *_ = json.loads(parent.stdout.readline())
    parent.kill()
    _wait_until_stopping(kept_dir)
    successor = run_python(STARTS_A_SERVER, str(kept_dir))
    assert json.loads(successor.stdout.readline())[0] != pid
    log = (kept_dir / "server.log").read_text()
    assert "database system is shut down" in log
    assert "not properly shut down" not in log


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_during_initdb_leaves_nothing(number, run_python, eventually, open_dir):
    code = "import sys; from lonnymq.embedded import embedded; embedded(sys.argv[1])"
    parent = run_python(code, str(open_dir / "data"), stderr=subprocess.DEVNULL)
    eventually(lambda: any(path.joinpath("base").exists() for path in open_dir.iterdir()))
    parent.send_signal(number)
    eventually(lambda: list(open_dir.iterdir()) == [])


def test_control_c_reaches_only_the_parent_which_shuts_down(run_python, is_gone):
    parent = run_python(STARTS_A_SERVER, start_new_session=True)
    pid, watchdog, data_dir, _, _ = json.loads(parent.stdout.readline())
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
    assert parent.communicate()[0] == "True\n"
    assert is_gone(pid)
    assert is_gone(watchdog)
    assert not Path(data_dir).exists()


def test_signals_to_all_processes_still_cause_a_clean_shutdown(run_python, eventually, is_gone):
    parent = run_python(STARTS_A_SERVER)
    pid, watchdog, data_dir, _, _ = json.loads(parent.stdout.readline())
    for process in (watchdog, pid, parent.pid):
        os.kill(process, signal.SIGTERM)
    eventually(lambda: is_gone(pid) and is_gone(watchdog))
    assert not Path(data_dir).parent.exists()


def test_a_forked_child_does_not_hide_the_parents_death(run_python, eventually, is_gone):
    code = """
import os, time
from lonnymq.embedded import embedded
server = embedded(fsync=False)
child = os.fork()
if child != 0:
    print(server.pid, server.data_dir, child)
os.close(1)
time.sleep(60)
"""
    parent = run_python(code)
    pid, data_dir, child = parent.stdout.readline().split()
    try:
        parent.kill()
        eventually(lambda: is_gone(int(pid)) and not Path(data_dir).exists())
        assert not is_gone(int(child))
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_an_open_connection_does_not_prevent_the_cleanup(run_python, eventually, is_gone):
    parent = run_python(STARTS_A_SERVER)
    pid, watchdog, data_dir, _, dsn = json.loads(parent.stdout.readline())
    with psycopg.connect(dsn) as connection:
        connection.execute("create table t as select 1 as one")
        parent.kill()
        eventually(lambda: is_gone(pid) and is_gone(watchdog))
        assert not Path(data_dir).exists()
        connection.close()


def _wait_until_stopping(data_dir: Path) -> None:
    """Wait until the pid file says so, or is gone."""
    while True:
        try:
            if "stopping" in (data_dir / "postmaster.pid").read_text():
                return
        except FileNotFoundError:
            return
