"""A postmaster as other processes see it: its pid file, its child processes, and how to end them.

This module imports nothing of ours, because the watchdog process loads it alone, by its path.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PID_FILE = "postmaster.pid"


@dataclass(frozen=True)
class PidFile:
    """The lines of `postmaster.pid` that matter to us; PostgreSQL writes them one by one as it starts."""

    pid: int
    port: int
    socket_dir: str
    listen_address: str
    shared_memory_id: int | None
    status: str


def read_pid_file(data_dir: Path) -> PidFile | None:
    try:
        lines = (data_dir / PID_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    lines = [line.strip() for line in lines] + [""] * 8
    if not re.fullmatch(r"\d+", lines[0]):
        return None  # empty while it is written, or negative for a single-user backend, as in initdb
    keys = lines[6].split()
    return PidFile(
        pid=int(lines[0]),
        port=int(lines[3]) if lines[3].isdigit() else 0,
        socket_dir=lines[4],
        listen_address=lines[5],
        shared_memory_id=int(keys[1]) if len(keys) == 2 else None,
        status=lines[7],
    )


def running_pid(data_dir: Path) -> int | None:
    """Return the pid of this directory's postmaster; None if the pid file is stale or its pid reused."""
    pid_file = read_pid_file(data_dir)
    if pid_file is None or not is_alive(pid_file.pid):
        return None
    return pid_file.pid if _works_in(pid_file.pid, data_dir) else None


def is_alive(pid: int) -> bool:
    return _state(pid) not in ("", "Z")


def signal_process(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_with_backends(pid: int) -> list[int]:
    """Send SIGKILL to the postmaster and all its children; return the pids of the children."""
    signal_process(pid, signal.SIGSTOP)  # it must neither start nor reap children while we list them
    deadline = time.monotonic() + 2
    while _state(pid)[:1] not in ("T", "Z", "") and time.monotonic() < deadline:
        time.sleep(0.005)
    backends = _children(pid)
    for victim in (pid, *backends):
        signal_process(victim, signal.SIGKILL)
    return backends


def free_shared_memory(data_dir: Path) -> None:
    """Remove the System V segment of a killed server, whose directory is about to be removed.

    Otherwise only the next start in that directory would remove it.
    """
    pid_file = read_pid_file(data_dir)
    if pid_file is not None and pid_file.shared_memory_id is not None and not running_pid(data_dir):
        import ctypes  # slow to import, and rarely needed

        remove_segment = 0
        ctypes.CDLL(None).shmctl(pid_file.shared_memory_id, remove_segment, None)


def _works_in(pid: int, data_dir: Path) -> bool:
    """Whether a process's working directory is the data directory; without /proc, check its command line."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data_dir)
    except FileNotFoundError:
        return not os.path.exists("/proc/self") and "postgres" in _ps("-o", "command=", "-p", str(pid))
    except PermissionError:
        return False  # another user's process, not our server, which runs as this user unless we are root


def _state(pid: int) -> str:
    """Return the state as one letter, as ps prints it; empty if there is no such process."""
    if os.path.exists("/proc/self/stat"):
        return _proc_stat(pid)[0]
    return _ps("-o", "state=", "-p", str(pid)).strip()[:1]


def _children(pid: int) -> list[int]:
    if os.path.exists("/proc/self/stat"):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [other for other in pids if _proc_stat(other)[1] == pid]
    pairs = [line.split() for line in _ps("-A", "-o", "pid=,ppid=").splitlines()]
    return [int(other) for other, parent in pairs if int(parent) == pid]


def _proc_stat(pid: int) -> tuple[str, int]:
    """Return state and parent pid, which follow the command in parentheses, which may contain anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True).stdout
