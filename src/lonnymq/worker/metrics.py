"""Counts the attempts of a worker's process, for those who want metrics; otherwise nothing of this exists."""

import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from lonnymq.worker.worker_log import LEVELS

if TYPE_CHECKING:
    from lonnymq.worker.attempt import Attempt
    from lonnymq.worker.inventory import Inventory

# Upper limits of the buckets, in seconds; the last bucket has none.
PROCESS_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
WAIT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
OUTCOMES = (*LEVELS, "refused")
# The most tasks that are counted apart: an application's own `route()` may return any number of names.
MAX_TASKS = 200
OTHER_TASKS = "(other)"
# Of attempts that no handler has started.
NOT_STARTED = "(not started)"


@dataclass
class Histogram:
    counts: list[int]
    total: float = 0.0

    @classmethod
    def empty(cls, bounds: Sequence[float]) -> Self:
        return cls([0] * (len(bounds) + 1))

    def plus(self, other: "Histogram") -> "Histogram":
        counts = [one + another for one, another in zip(self.counts, other.counts, strict=True)]
        return Histogram(counts, self.total + other.total)


@dataclass
class TaskCounts:
    """The attempts of one task: how they ended, and how long its handler took."""

    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    process: Histogram = field(default_factory=lambda: Histogram.empty(PROCESS_BOUNDS))

    def plus(self, other: "TaskCounts") -> "TaskCounts":
        outcomes = {name: self.outcomes[name] + other.outcomes[name] for name in OUTCOMES}
        return TaskCounts(outcomes, self.process.plus(other.process))


@dataclass(frozen=True)
class WorkerFigures:
    """What one process has counted, or several; `last_fetch_at` is that of the one most behind."""

    tasks: Mapping[str, TaskCounts] = field(default_factory=dict)
    wait: Histogram = field(default_factory=lambda: Histogram.empty(WAIT_BOUNDS))
    processes: int = 0
    slots: int = 0
    busy: int = 0
    last_fetch_at: float | None = None

    def plus(self, other: "WorkerFigures") -> "WorkerFigures":
        tasks = dict(self.tasks)
        for name, counts in other.tasks.items():
            known = name in tasks or len(tasks) < MAX_TASKS
            kept = name if known else OTHER_TASKS
            tasks[kept] = tasks[kept].plus(counts) if kept in tasks else counts
        fetches = [at for at in (self.last_fetch_at, other.last_fetch_at) if at is not None]
        return WorkerFigures(
            tasks,
            self.wait.plus(other.wait),
            self.processes + other.processes,
            self.slots + other.slots,
            self.busy + other.busy,
            min(fetches, default=None),
        )

    def ended(self) -> "WorkerFigures":
        """Return what remains of a process that has ended: what it has counted."""
        return WorkerFigures(self.tasks, self.wait)

    def to_json(self) -> list[Any]:
        """Return the figures for another process."""
        shown = {
            name: [list(one.outcomes.values()), *_values(one.process)] for name, one in self.tasks.items()
        }
        own = [self.processes, self.slots, self.busy, self.last_fetch_at]
        return [shown, _values(self.wait), *own]

    @classmethod
    def from_json(cls, sent: list[Any]) -> Self:
        """Read what `to_json` of the same release has returned."""
        shown, wait, *own = sent
        tasks = {
            name: TaskCounts(dict(zip(OUTCOMES, outcomes, strict=True)), Histogram(counts, total))
            for name, (outcomes, counts, total) in shown.items()
        }
        return cls(tasks, Histogram(*wait), *own)


class WorkerMetrics:
    """Counts in one process."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskCounts] = {}
        self._wait = Histogram.empty(WAIT_BOUNDS)
        # Of the attempt before: the next one is often of the same task.
        self._last_name, self._last = "", TaskCounts()
        self._inventory: Inventory | None = None
        self._slots = 0
        self._started_at = time.monotonic()

    def attach(self, inventory: "Inventory", slots: int) -> None:
        """Follow a run of the worker."""
        self._inventory, self._slots = inventory, slots

    def add_tasks(self, names: Iterable[str]) -> None:
        """Show these tasks before they have been called."""
        for name in names:
            self._counts_of(name)

    def record(self, attempt: "Attempt", outcome: str) -> None:
        """Count an attempt that has ended. Written to be fast: it runs for each message."""
        started_at = attempt.started_at
        if not started_at:
            self._counts_of(NOT_STARTED).outcomes[outcome] += 1
            return
        name = NOT_STARTED if attempt.handler is None else attempt.handler.name
        if name != self._last_name:
            self._last_name, self._last = name, self._counts_of(name)
        counts = self._last
        counts.outcomes[outcome] += 1
        took_s = (attempt.ended_at or time.monotonic()) - started_at
        counts.process.counts[bisect_left(PROCESS_BOUNDS, took_s)] += 1
        counts.process.total += took_s
        message = attempt.message.__dict__
        # A priority has no time of its own.
        due_ms = message["dequeue_at"]
        if due_ms < message["created_ms"]:
            due_ms = message["created_ms"]
        # Until the lease by the server's clock, from the reply on by ours.
        waited_s = (message["leased_us"] - due_ms * 1000) * 1e-6 + started_at - attempt.waiting_since
        self._wait.counts[bisect_left(WAIT_BOUNDS, waited_s)] += 1
        self._wait.total += waited_s if waited_s > 0.0 else 0.0

    def figures(self) -> WorkerFigures:
        """Return a copy of what was counted, and what the process does now; any thread may ask."""
        inventory = self._inventory
        fetched_at = self._started_at if inventory is None else inventory.fetched_at or self._started_at
        return WorkerFigures(
            {name: counts.plus(TaskCounts()) for name, counts in list(self._tasks.items())},
            self._wait.plus(Histogram.empty(WAIT_BOUNDS)),
            processes=1,
            slots=self._slots,
            busy=0 if inventory is None else min(inventory.occupied_slots, self._slots),
            last_fetch_at=time.time() - (time.monotonic() - fetched_at),
        )

    def _counts_of(self, name: str) -> TaskCounts:
        if name not in self._tasks and len(self._tasks) >= MAX_TASKS:
            name = OTHER_TASKS
        return self._tasks.setdefault(name, TaskCounts())


def _values(histogram: Histogram) -> list[Any]:
    return [getattr(histogram, one.name) for one in fields(histogram)]
