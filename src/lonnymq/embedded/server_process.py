"""One run of postgres: its command line, and the wait until it accepts connections."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from lonnymq.embedded import cluster, dsn, places, postmaster
from lonnymq.embedded.errors import AlreadyRunning, ServerNotStarted
from lonnymq.embedded.exclusive import alone_in
from lonnymq.embedded.home import Home
from lonnymq.embedded.plan import DEFAULT_PORT, Plan

LOG_TAIL_LINES = 30
PORT_TAKEN = "could not create any TCP/IP sockets"
# Backends of a killed postmaster need a moment to notice and leave.
FORMER_BACKENDS_LEFT = "pre-existing shared memory block"


@dataclass(frozen=True)
class Run:
    """A postmaster that accepts connections."""

    process: subprocess.Popen[bytes]
    port: int
    # It may hold a password.
    dsn: str = field(repr=False)


def launch(home: Home, plan: Plan, former_port: int | None) -> Run:
    """Tries again when a port was taken in between or when backends of a killed server are still leaving."""
    deadline = time.monotonic() + plan.start_timeout_s
    port = plan.port or former_port or _any_port(plan)
    with alone_in(home.data_dir, deadline):
        _refuse_running(home.data_dir, deadline)
        while True:
            _disown_stale_files(home)
            url = _dsn(home, plan, port)
            log_start = home.log_path.stat().st_size
            process = _spawn(home, plan, port)
            if _is_ready_in_time(process, home.data_dir, deadline):
                return Run(process, port, url)
            tail = _log_tail(home.log_path, log_start)
            is_passing = (PORT_TAKEN in tail and plan.may_choose_port) or FORMER_BACKENDS_LEFT in tail
            if not is_passing or time.monotonic() > deadline:
                raise ServerNotStarted(_account_of_failure(process, home, plan, tail))
            port = _any_port(plan) if PORT_TAKEN in tail else port
            time.sleep(0.1)


def _spawn(home: Home, plan: Plan, port: int) -> subprocess.Popen[bytes]:
    settings = {
        # Files in the data directory vanish with it, whereas a killed server would leave /dev/shm behind.
        **({"dynamic_shared_memory_type": "mmap"} if plan.is_temporary else {}),
        "logging_collector": "off",
        "lc_messages": "C",
        **plan.settings,
        "fsync": "on" if plan.fsync else "off",
        "hba_file": str(home.hba_path),
        "listen_addresses": dsn.LOOPBACK if plan.listens_on_tcp else "",
        "port": str(port),
        "unix_socket_directories": str(home.run_dir) if plan.unix_socket else "",
    }
    command = ["postgres", "-D", str(home.data_dir)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    log = places.open_owned(home.log_path, os.O_WRONLY | os.O_APPEND)
    try:
        return home.programs.spawn(command, output=log, alive_fd=home.guard.alive_fd)
    finally:
        os.close(log)


def _is_ready_in_time(process: subprocess.Popen[bytes], data_dir: Path, deadline: float) -> bool:
    """Reads the status that postgres itself keeps in its pid file, as pg_ctl does."""
    try:
        while process.poll() is None and time.monotonic() < deadline:
            pid_file = postmaster.read_pid_file(data_dir)
            if pid_file and pid_file.pid == process.pid and pid_file.status in ("ready", "standby"):
                return True
            time.sleep(0.01)
    except BaseException:
        end(process, signal.SIGINT)
        raise
    end(process, signal.SIGQUIT)
    return False


def end(process: subprocess.Popen[bytes], number: signal.Signals, patience_s: float = 30.0) -> None:
    """Asks with this signal, then with SIGQUIT, then kills."""
    for request, wait_s in ((number, patience_s), (signal.SIGQUIT, 10.0)):
        process.send_signal(request)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to all; returns when the last backend is gone."""
    backends = postmaster.kill_with_backends(process.pid) if process.poll() is None else []
    process.wait()
    while any(postmaster.is_alive(pid) for pid in backends):
        time.sleep(0.005)


def _refuse_running(data_dir: Path, deadline: float) -> None:
    """A server that is shutting down, because its parent was killed, is waited for."""
    while (pid := postmaster.running_pid(data_dir)) is not None:
        pid_file = postmaster.read_pid_file(data_dir)
        if pid_file is not None and (pid_file.status != "stopping" or time.monotonic() > deadline):
            url = dsn.dsn_of_running(pid_file)
            raise AlreadyRunning(
                f"a server is already running in {data_dir}: pid {pid}, dsn {url}", pid=pid, dsn=url
            )
        time.sleep(0.02)


def _disown_stale_files(home: Home) -> None:
    """PostgreSQL trusts any living process under a stale pid, except its own parent: so name us.

    The rest of the file stays, for it lets PostgreSQL see backends of the killed server that still run.
    """
    if postmaster.read_pid_file(home.data_dir) is not None:
        with open(places.open_owned(home.data_dir / postmaster.PID_FILE, os.O_RDWR), "r+") as file:
            _, _, rest = file.read().partition("\n")
            file.seek(0)
            file.write(f"{os.getpid()}\n{rest}")
            file.truncate()
    for leftover in home.run_dir.glob(".s.PGSQL.*"):
        leftover.unlink()


def _any_port(plan: Plan) -> int:
    if not plan.listens_on_tcp:
        return DEFAULT_PORT
    with socket.socket() as probe:
        probe.bind((dsn.LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _dsn(home: Home, plan: Plan, port: int) -> str:
    if plan.listens_on_tcp:
        return dsn.tcp_dsn(port, cluster.read_password(home.data_dir))
    return dsn.socket_dsn(home.run_dir, port)


def _log_tail(log_path: Path, start: int) -> str:
    with open(places.open_owned(log_path, os.O_RDONLY), "rb") as log:
        log.seek(start)
        return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:])


def _account_of_failure(process: subprocess.Popen[bytes], home: Home, plan: Plan, tail: str) -> str:
    ended = f"PostgreSQL did not start in {home.data_dir} (exit status {process.returncode})"
    log = "its log" if plan.is_temporary else f"its log {home.log_path}"
    return f"{ended}; it was given {plan.start_timeout_s:g} s. The end of {log}:\n{tail}"
