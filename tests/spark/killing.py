"""Kills a program with all the processes that it started."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def live_processes(session: int) -> list[int]:
    """Return the processes of a session, not of a process group: Spark's Python workers have their own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, owner, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z" and int(owner) == session:
                found.append(int(stat.parent.name))
    return found


def kill_session(session: int) -> None:
    """Kill all processes of a session, including those it starts meanwhile, and wait until they are gone."""
    deadline = time.monotonic() + 60
    while found := live_processes(session):
        assert time.monotonic() < deadline, found
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
