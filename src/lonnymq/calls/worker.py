"""Sessions that stand for workers, so that leases of one that dies end early; and what workers report."""

from collections.abc import Mapping
from typing import Any

from lonnymq.calls.statement import Call, Rows, Statement, call, function, in_utc, nothing
from lonnymq.model import (
    DrainOutcome,
    FleetPart,
    HeldMessage,
    RegisterOutcome,
    ReportReply,
    Watched,
    WorkerDrain,
    WorkerReport,
    WorkerState,
    WorkerStatus,
)

REGISTER = function("worker_register", p_worker="text", p_secret="text", p_pid="integer")
WATCH = function("worker_watch", "wait_ms, leases, workers")
LEAVE = function("worker_leave", p_worker="text", p_secret="text")
REPORT = function(
    "worker_report",
    "wait_ms, is_asked_to_drain",
    p_worker="text",
    p_secret="text",
    p_host="text",
    p_pid="integer",
    p_version="text",
    p_tasks="text[]",
    p_slots="integer",
    p_uptime_ms="bigint",
    p_has_session="boolean",
    p_busy="integer",
    p_held="integer",
    p_message_ids="bigint[]",
    p_channels="text[]",
    p_leased_ats="bigint[]",
    p_is_draining="boolean",
)
DRAIN = function("worker_drain", "worker, outcome", p_worker="text")
# At most 10,000 processes are kept.
FLEET = Statement(
    "worker_status",
    "select state, count(*), sum(slots)::bigint, sum(busy)::bigint from {schema}.worker_status"
    " group by state",
)
STATUSES = Statement(
    "worker_status",
    "select worker, state, host, pid, version, tasks, slots, busy, held, message_ids, channels, leased_ats,"
    " started_at, seen_at, drain_at from {schema}.worker_status where worker > %t::text order by worker"
    " limit %t::bigint",
    ("text", "bigint"),
)


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


def report(worker: str, secret: str, given: WorkerReport) -> Call[ReportReply]:
    return call(
        REPORT,
        *(worker, secret, given.host, given.pid, given.version, given.tasks, given.slots, given.uptime_ms),
        *(given.has_session, given.busy, given.held, given.message_ids, given.channels, given.leased_us),
        given.is_draining,
        decode=lambda rows: ReportReply(*rows[0]),
    )


def drain(worker: str | None) -> Call[list[WorkerDrain]]:
    return call(
        DRAIN, worker, decode=lambda rows: [WorkerDrain(row[0], DrainOutcome(row[1])) for row in rows]
    )


def fleet() -> Call[Mapping[WorkerState, FleetPart]]:
    """Return how many processes there are, and their slots, by their state."""
    return call(FLEET, decode=lambda rows: {WorkerState(row[0]): FleetPart(*row[1:]) for row in rows})


def statuses(after: str, limit: int) -> Call[list[WorkerStatus]]:
    return call(STATUSES, after, limit, decode=lambda rows: [_status(row) for row in rows])


def _status(row: tuple[Any, ...]) -> WorkerStatus:
    worker, state, host, pid, version, tasks, slots, busy, held, ids, channels, leased_ats, *times = row
    started_at, seen_at, drain_at = in_utc(tuple(times))
    return WorkerStatus(
        worker=worker,
        state=WorkerState(state),
        host=host,
        pid=pid,
        version=version,
        tasks=tuple(tasks),
        slots=slots,
        busy=busy,
        held=held,
        holds=tuple(
            HeldMessage(id=id_, channel=channel, leased_at=at)
            for id_, channel, at in zip(ids, channels, in_utc(tuple(leased_ats)), strict=True)
        ),
        started_at=started_at,
        seen_at=seen_at,
        drain_at=drain_at,
    )
