"""Findings about workers: whether any dequeues, and what their processes report about themselves."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from lonnymq.diagnostics import Examination
from lonnymq.doctor.finding import MAX_LISTED, Finding, Level
from lonnymq.formatting import duration, one_line, quantity
from lonnymq.model import QueuePulse, WorkerState, WorkerStatus

# As many processes as are read; there may be more.
MAX_WORKERS = 1000
START = "start one: lonnymq work module:app; if one runs, check that it uses this database and schema"


def workers(
    pulse: QueuePulse, facts: Examination, fleet: Sequence[WorkerStatus], now: datetime
) -> Iterator[Finding]:
    """Judge by what the queue saw; workers that are not ours need not report themselves."""
    working = [one for one in fleet if one.state is WorkerState.WORKING]
    draining = [one for one in fleet if one.state is WorkerState.DRAINING]
    is_anyone_there = bool(pulse.leased or pulse.sleepers)
    if not is_anyone_there and any(one.reason == "ready" for one in facts.channels):
        yield Finding(
            Level.PROBLEM, "workers", f"messages are due, but {_nobody(working, draining)}", _advice(working)
        )
    elif pulse.expired:
        yield Finding(
            Level.WARNING,
            "workers",
            f"{pulse.expired:,} of {quantity(pulse.leased, 'lease')} expired, and no worker took over",
            "a worker died, and no other one dequeues: start one",
        )
    elif draining and not working:
        yield Finding(
            Level.WARNING,
            "workers",
            f"all workers are draining ({_processes(draining)}): nobody takes new messages",
            "start workers, unless the queue is to stand still: lonnymq work module:app",
        )
    elif not is_anyone_there and not working:
        yield Finding(Level.NOTE, "workers", "no worker reports itself, sleeps or holds a message", START)
    else:
        yield Finding(Level.OK, "workers", _figures(pulse, working))
    yield from _gone([one for one in fleet if one.state is WorkerState.GONE], now)
    yield from _versions([*working, *draining])


def _nobody(working: Sequence[WorkerStatus], draining: Sequence[WorkerStatus]) -> str:
    if working:
        return f"no worker dequeues them, although {_processes(working)} reported a moment ago"
    if draining:
        return f"all workers are draining ({_processes(draining)})"
    return "no worker dequeues them"


def _advice(working: Sequence[WorkerStatus]) -> str:
    return "their logs say why: lonnymq workers lists them" if working else START


def _figures(pulse: QueuePulse, working: Sequence[WorkerStatus]) -> str:
    figures = f"{quantity(pulse.leased, 'message')} leased, {quantity(pulse.sleepers, 'worker')} asleep"
    if not working:
        return figures
    busy, slots = sum(one.busy for one in working), sum(one.slots for one in working)
    return f"{_processes(working)} with {busy:,} of {quantity(slots, 'slot')} busy; {figures}"


def _processes(some: Sequence[WorkerStatus]) -> str:
    return f"{len(some):,}{'+' if len(some) >= MAX_WORKERS else ''} process{'es' if len(some) != 1 else ''}"


def _gone(gone: Sequence[WorkerStatus], now: datetime) -> Iterator[Finding]:
    """Report processes that ended without a goodbye, the latest first."""
    for one in sorted(gone, key=lambda one: one.seen_at, reverse=True)[:MAX_LISTED]:
        age = duration(max(0.0, (now - one.seen_at).total_seconds()))
        yield Finding(
            Level.WARNING,
            "workers",
            f"{one.worker} has not reported for {age}; it held {quantity(one.held, 'message')}",
            "it was killed, or hangs, or lost the database: its log says which; its leases end by themselves",
        )
    if len(gone) > MAX_LISTED:
        yield Finding(Level.WARNING, "workers", f"and {len(gone) - MAX_LISTED} more", "lonnymq workers")


def _versions(running: Sequence[WorkerStatus]) -> Iterator[Finding]:
    versions = Counter(one.version for one in running)
    if len(versions) > 1:
        found = one_line(", ".join(f"{name} ({count:,})" for name, count in sorted(versions.items())), 200)
        yield Finding(
            Level.NOTE,
            "workers",
            f"processes run different versions of lonnymq: {found}",
            "during a deployment that is normal; after it, restart those with the older version",
        )
