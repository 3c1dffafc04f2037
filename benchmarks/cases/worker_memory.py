"""A worker that drains a million messages needs no more memory at the end than after the first tenth."""

import os
from functools import partial
from pathlib import Path

from benchmarks import fleet
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.contenders.ours import OursSession
from benchmarks.fleet import Gate
from benchmarks.load import channel_names

TITLE = "memory that {} gains while it drains 1M messages, after the first tenth"
NAME = "worker-memory"
MIB = 1024 * 1024


def run(bench: Bench) -> list[Row]:
    contender = Ours()
    messages = bench.effort.drained_for_memory
    with bench.installed(contender) as dsn:
        contender.fill(dsn, channel_names(1_000), messages)
        [(worker_mib, backend_mib)] = fleet.run([partial(drain, dsn, messages)])
    note = f"{messages:,} messages"
    return [
        Row(
            NAME, TITLE.format("a worker process"), None, "MiB", worker_mib, at_most=4, note=f"worker, {note}"
        ),
        Row(NAME, TITLE.format("its backend"), None, "MiB", backend_mib, at_most=4, note=f"backend, {note}"),
    ]


def drain(dsn: str, messages: int, gate: Gate) -> tuple[float, float]:
    session = Ours().session(dsn)
    gate()
    done = drain_until(session, 0, messages // 10)
    worker, backend = worker_bytes(), backend_bytes(session)
    drain_until(session, done, messages)
    gained = worker_bytes() - worker, backend_bytes(session) - backend
    session.close()
    return gained[0] / MIB, gained[1] / MIB


def drain_until(session: OursSession, done: int, until: int) -> int:
    while done < until:
        leases = session.dequeue(100)
        if leases:
            session.complete(leases)
        done += len(leases)
    return done


def worker_bytes() -> int:
    resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return resident_pages * os.sysconf("SC_PAGE_SIZE")


def backend_bytes(session: OursSession) -> int:
    """Of its own, without the shared buffers that it touched."""
    return int(session.wire.rows("select sum(total_bytes) from pg_backend_memory_contexts")[0][0])


CASE = Case(NAME, TITLE.format("a worker"), run)
