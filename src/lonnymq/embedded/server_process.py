"""Starts and stops the process of a server."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from lonnymq.embedded import cluster, dsn, postmaster, private_files
from lonnymq.embedded.directory_lock import lock_directory
from lonnymq.embedded.errors import AlreadyRunning, ServerNotStarted
from lonnymq.embedded.options import DEFAULT_PORT, ServerOptions
from lonnymq.embedded.workspace import Workspace

LOG_TAIL_LINES = 30
PORT_TAKEN = "could not create any TCP/IP sockets"
# Backends of a killed postmaster need a moment to notice that and exit.
FORMER_BACKENDS_LEFT = "pre-existing shared memory block"


@dataclass(frozen=True)
class ServerProcess:
    """A postmaster that accepts connections."""

    popen: subprocess.Popen[bytes]
    port: int
    # It may contain a password.
    dsn: str = field(repr=False)


def start(workspace: Workspace, options: ServerOptions, former_port: int | None) -> ServerProcess:
    """Start the server; retry if its port has just been taken or a killed server's backends still run."""
    deadline = time.monotonic() + options.start_timeout_s
    port = options.port or former_port or _any_port(options)
    with lock_directory(workspace.data_dir, deadline):
        _refuse_running(workspace.data_dir, deadline)
        while True:
            _neutralize_stale_files(workspace)
            url = _dsn(workspace, options, port)
            log_start = workspace.log_path.stat().st_size
            process = _spawn(workspace, options, port)
            if _is_ready_in_time(process, workspace.data_dir, deadline):
                return ServerProcess(process, port, url)
            tail = _log_tail(workspace.log_path, log_start)
            is_temporary = (PORT_TAKEN in tail and options.may_choose_port) or FORMER_BACKENDS_LEFT in tail
            if not is_temporary or time.monotonic() > deadline:
                raise ServerNotStarted(_describe_failure(process, workspace, options, tail))
            port = _any_port(options) if PORT_TAKEN in tail else port
            time.sleep(0.1)


def _spawn(workspace: Workspace, options: ServerOptions, port: int) -> subprocess.Popen[bytes]:
    settings = {
        # Files in the data directory are removed with it, but a killed server would leave files in /dev/shm.
        **({"dynamic_shared_memory_type": "mmap"} if options.is_temporary else {}),
        "logging_collector": "off",
        "lc_messages": "C",
        **options.settings,
        "fsync": "on" if options.fsync else "off",
        "hba_file": str(workspace.hba_path),
        "listen_addresses": dsn.LOOPBACK if options.listens_on_tcp else "",
        "port": str(port),
        "unix_socket_directories": str(workspace.run_dir) if options.unix_socket else "",
    }
    command = ["postgres", "-D", str(workspace.data_dir)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    log = private_files.open_no_follow(workspace.log_path, os.O_WRONLY | os.O_APPEND)
    try:
        return workspace.runner.spawn(command, output=log, alive_fd=workspace.watchdog.alive_fd)
    finally:
        os.close(log)


def _is_ready_in_time(process: subprocess.Popen[bytes], data_dir: Path, deadline: float) -> bool:
    """Wait until the server accepts connections, by the status in its pid file, as pg_ctl does."""
    try:
        while process.poll() is None and time.monotonic() < deadline:
            pid_file = postmaster.read_pid_file(data_dir)
            if pid_file and pid_file.pid == process.pid and pid_file.status in ("ready", "standby"):
                return True
            time.sleep(0.01)
    except BaseException:
        stop(process, signal.SIGINT)
        raise
    stop(process, signal.SIGQUIT)
    return False


def stop(process: subprocess.Popen[bytes], number: signal.Signals, timeout_s: float = 30.0) -> None:
    """Send this signal, then SIGQUIT, then SIGKILL."""
    for request, wait_s in ((number, timeout_s), (signal.SIGQUIT, 10.0)):
        process.send_signal(request)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the postmaster and its backends; return when the last one is gone."""
    backends = postmaster.kill_with_backends(process.pid) if process.poll() is None else []
    process.wait()
    while any(postmaster.is_alive(pid) for pid in backends):
        time.sleep(0.005)


def _refuse_running(data_dir: Path, deadline: float) -> None:
    """Refuse a running server; wait for one that is shutting down because its parent was killed."""
    while (pid := postmaster.running_pid(data_dir)) is not None:
        pid_file = postmaster.read_pid_file(data_dir)
        if pid_file is not None and (pid_file.status != "stopping" or time.monotonic() > deadline):
            url = dsn.dsn_of_running(pid_file)
            raise AlreadyRunning(
                f"a server is already running in {data_dir}: pid {pid}, dsn {url}", pid=pid, dsn=url
            )
        time.sleep(0.02)


def _neutralize_stale_files(workspace: Workspace) -> None:
    """Write our pid to a stale pid file, and remove stale sockets.

    PostgreSQL takes any living process with a stale pid for a running server, except its own parent. The rest
    of the file stays, because it shows PostgreSQL which backends of the killed server still run.
    """
    if postmaster.read_pid_file(workspace.data_dir) is not None:
        with open(
            private_files.open_no_follow(workspace.data_dir / postmaster.PID_FILE, os.O_RDWR), "r+"
        ) as file:
            _, _, rest = file.read().partition("\n")
            file.seek(0)
            file.write(f"{os.getpid()}\n{rest}")
            file.truncate()
    for leftover in workspace.run_dir.glob(".s.PGSQL.*"):
        leftover.unlink()


def _any_port(options: ServerOptions) -> int:
    if not options.listens_on_tcp:
        return DEFAULT_PORT
    with socket.socket() as probe:
        probe.bind((dsn.LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _dsn(workspace: Workspace, options: ServerOptions, port: int) -> str:
    if options.listens_on_tcp:
        return dsn.tcp_dsn(port, cluster.read_password(workspace.data_dir))
    return dsn.socket_dsn(workspace.run_dir, port)


def _log_tail(log_path: Path, start: int) -> str:
    with open(private_files.open_no_follow(log_path, os.O_RDONLY), "rb") as log:
        log.seek(start)
        return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:])


def _describe_failure(
    process: subprocess.Popen[bytes], workspace: Workspace, options: ServerOptions, tail: str
) -> str:
    ended = f"PostgreSQL did not start in {workspace.data_dir} (exit status {process.returncode})"
    log = "its log" if options.is_temporary else f"its log {workspace.log_path}"
    return f"{ended}; the timeout is {options.start_timeout_s:g} s. The end of {log}:\n{tail}"
