"""Reads what the server has spent: CPU time of all its processes, bytes of WAL, bytes on disk."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

PROC = Path("/proc")


@dataclass(frozen=True)
class Costs:
    """The totals at one time; the difference of two is what the work in between cost."""

    # None if the server's processes are not visible on this machine.
    cpu_s: float | None
    wal_bytes: int
    disk_bytes: int

    def __sub__(self, other: "Costs") -> "Costs":
        cpu_s = None if self.cpu_s is None or other.cpu_s is None else self.cpu_s - other.cpu_s
        return Costs(cpu_s, self.wal_bytes - other.wal_bytes, self.disk_bytes - other.disk_bytes)


def read(dsn: str) -> Costs:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "select pg_backend_pid(), pg_current_wal_insert_lsn() - '0/0'::pg_lsn,"
            " pg_database_size(current_database())"
        ).fetchone()
        assert row is not None
        return Costs(server_cpu_s(row[0]), int(row[1]), int(row[2]))


def server_cpu_s(backend_pid: int) -> float | None:
    """Return the CPU seconds of the postmaster and all its children, including those that ended."""
    backend = stat(backend_pid)
    if backend is None:
        return None
    postmaster = backend.parent
    main = stat(postmaster)
    if main is None:
        return None
    return main.own_s + main.ended_s + sum(one.own_s for one in processes() if one.parent == postmaster)


@dataclass(frozen=True)
class Process:
    parent: int
    own_s: float
    # CPU seconds of its children that have ended.
    ended_s: float


def processes() -> Iterator[Process]:
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := stat(int(entry.name))) is not None:
            yield process


def stat(pid: int) -> Process | None:
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may contain anything; the state follows it.
    fields: list[Any] = text.rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return Process(int(fields[1]), own / tick, ended / tick)
