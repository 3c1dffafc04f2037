"""Sessions that stand for workers, so that the leases of a worker that dies end early."""

from lonnymq.calls.statement import Call, Rows, call, function, nothing
from lonnymq.model import RegisterOutcome, Watched

REGISTER = function("worker_register", p_worker="text", p_secret="text", p_pid="integer")
WATCH = function("worker_watch", "wait_ms, leases, workers")
LEAVE = function("worker_leave", p_worker="text", p_secret="text")


def register(worker: str, secret: str, pid: int) -> Call[RegisterOutcome]:
    """Make the session that executes this stand for the worker; `pid` is that of its connection."""
    return call(REGISTER, worker, secret, pid, decode=lambda rows: RegisterOutcome(rows[0][0]))


def watch() -> Call[Watched]:
    def decode(rows: Rows) -> Watched:
        wait_ms, leases, workers = rows[0]
        return Watched(wait_ms, leases, tuple(workers or ()))

    return call(WATCH, decode=decode)


def leave(worker: str, secret: str) -> Call[None]:
    return call(LEAVE, worker, secret, decode=nothing)
