"""The settings and exit codes of a worker."""

import os
import socket
from dataclasses import dataclass
from enum import IntEnum

from lonnymq.calls import argument


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """All settings are per process: each has connections, slots and leases of its own."""

    # Handlers that run at the same time.
    concurrency: int = 10
    # Messages leased ahead of free slots; None: as many as are processed in 20 ms, at most 400. A message
    # that has not started after 100 ms goes back to the queue.
    prefetch: int | None = None
    # Bytes of large contents (more than a few kB each) in memory at a time. A larger message runs alone.
    max_bytes: int = 128 * 1024 * 1024
    # The most messages that a batch handler is given at once.
    batch_size: int = 100
    # How long a lease lasts without a heartbeat; heartbeats are sent three times per lease.
    lease_s: float = 30.0
    processes: int = 1
    # How long running handlers may continue after the first signal; orchestrators often kill after 30 s.
    shutdown_s: float = 20.0
    # How long a call to the database may take before its connection is treated as dead.
    call_timeout_s: float = 10.0
    # Shown in leases and logs, with the process id; default: the host name.
    name: str = ""

    def __post_init__(self) -> None:
        argument.whole("concurrency", self.concurrency, 1, 10_000)
        argument.optional_whole("prefetch", self.prefetch, 0, 10_000)
        argument.whole("max_bytes", self.max_bytes, 1, argument.MAX_BIGINT)
        argument.whole("batch_size", self.batch_size, 1, 10_000)
        argument.lease_ms(self.lease_s, low_s=0.1)
        argument.whole("processes", self.processes, 1, 1_000)
        argument.seconds("shutdown_s", self.shutdown_s)
        argument.seconds("call_timeout_s", self.call_timeout_s)
        argument.text("name", self.name, 0, 200)

    @property
    def lease_ms(self) -> int:
        """The length of a lease in the queue's unit."""
        return argument.lease_ms(self.lease_s)

    def worker_name(self) -> str:
        """Return the host and the process id; a worker appends what no other process ever bears."""
        return f"{self.name or socket.gethostname()[:200]}:{os.getpid()}"


class ExitCode(IntEnum):
    """The exit code of a worker's process."""

    # Asked to stop, and all running handlers have finished.
    FINISHED = 0
    # An error of the worker itself; the log has it.
    FAILED = 1
    # The queue cannot be used, and waiting would not help: the DSN is wrong (database, role, password), the
    # queue is not installed, too new or not permitted, or a pooler does not keep the session.
    UNUSABLE = 3
    # Asked to stop, and handlers were interrupted; their messages were given back.
    INTERRUPTED = 4
