"""A worker that drains a million messages should not use more memory than after the first tenth."""

import os
from functools import partial
from pathlib import Path

from benchmarks import parallel
from benchmarks.contenders import LonnyMQ
from benchmarks.contenders.lonnymq import LonnyMQSession
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names
from benchmarks.parallel import StartBarrier

TITLE = "memory growth of {} while draining 1M messages, after the first tenth"
NAME = "worker-memory"
MIB = 1024 * 1024


def run(harness: Harness) -> list[Row]:
    contender = LonnyMQ()
    messages = harness.effort.drained_for_memory
    with harness.install(contender) as dsn:
        contender.fill(dsn, channel_names(1_000), messages)
        [(worker_mib, backend_mib)] = parallel.run([partial(drain, dsn, messages)])
    note = f"{messages:,} messages"
    return [
        Row(
            NAME, TITLE.format("a worker process"), None, "MiB", worker_mib, at_most=4, note=f"worker, {note}"
        ),
        Row(NAME, TITLE.format("its backend"), None, "MiB", backend_mib, at_most=4, note=f"backend, {note}"),
    ]


def drain(dsn: str, messages: int, start: StartBarrier) -> tuple[float, float]:
    session = LonnyMQ().session(dsn)
    start()
    done = drain_until(session, 0, messages // 10)
    worker, backend = worker_bytes(), backend_bytes(session)
    drain_until(session, done, messages)
    growth = worker_bytes() - worker, backend_bytes(session) - backend
    session.close()
    return growth[0] / MIB, growth[1] / MIB


def drain_until(session: LonnyMQSession, done: int, until: int) -> int:
    while done < until:
        leases = session.dequeue(100)
        if leases:
            session.complete(leases)
        done += len(leases)
    return done


def worker_bytes() -> int:
    resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return resident_pages * os.sysconf("SC_PAGE_SIZE")


def backend_bytes(session: LonnyMQSession) -> int:
    """Return the backend's own memory, without the shared buffers that it has touched."""
    return int(session.wire.rows("select sum(total_bytes) from pg_backend_memory_contexts")[0][0])


CASE = Case(NAME, TITLE.format("a worker"), run)
