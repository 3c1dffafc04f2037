"""What bounds the rates: CPU time of the backend and bytes of WAL per message, one operation at a time.

One connection, nobody else: unlike a rate these hardly depend on what else the machine does.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Bare, ChannelRow, Ours
from benchmarks.contenders.contender import Contender, Lease, Session
from benchmarks.load import channel_names

NAME = "costs"
TITLE = "CPU of the backend and WAL, per message and operation"
CPU, WAL = "µs of CPU", "bytes of WAL"
# Calls before plans are cached and pages are warm, and calls of which each figure is the median.
WARM_UP, CALLS = 20, 200
# Calls between two looks at the log: its position is asked for over the same server.
CALLS_PER_PART = 20


@dataclass(frozen=True)
class PerMessage:
    """What an operation cost, of one message."""

    cpu_us: float
    wal_bytes: float

    def of(self, unit: str) -> float:
        return self.cpu_us if unit == CPU else self.wal_bytes


@dataclass(frozen=True)
class Shape:
    """Messages in so many channels, leased and ended so many at a time."""

    batch: int
    channels: int

    @property
    def title(self) -> str:
        where = "one channel" if self.channels == 1 else f"{self.channels:,} channels"
        return f"batch {self.batch}, {where}"


SHAPES = (Shape(100, 1), Shape(100, 1_000), Shape(1, 1))


def run(bench: Bench) -> list[Row]:
    ours, bare, row = (measure(bench, contender) for contender in (Ours(), Bare(), ChannelRow()))
    return [
        Row(NAME, operation, against, unit, value, reference, note=f"{unit}: {operation}")
        for unit in (CPU, WAL)
        for operation in ours
        for against, other in (("bare", bare), ("channel-row", row))
        for value, reference in [(ours[operation].of(unit), other[operation].of(unit))]
    ]


def measure(bench: Bench, contender: Contender) -> dict[str, PerMessage]:
    found: dict[str, PerMessage] = {}
    calls = CALLS if bench.effort.name != "smoke" else CALLS_PER_PART
    for shape in SHAPES:
        with bench.installed(contender) as dsn:
            names = channel_names(shape.channels)
            contender.fill(dsn, names, (WARM_UP + calls) * shape.batch)
            with psycopg.connect(dsn, autocommit=True) as observer:
                meter = Meter(observer, contender.session(dsn))
                found |= shape_costs(meter, shape, names, calls)
                meter.session.close()
        bench.progress(f"  {NAME} {contender.name}, {shape.title}")
    return found


def shape_costs(meter: "Meter", shape: Shape, names: Sequence[str], calls: int) -> dict[str, PerMessage]:
    session, found = meter.session, {}
    if shape.batch == 1:
        found["create, one at a time"] = meter.costs(lambda: session.create(names[0]), WARM_UP, calls)
    leased: list[list[Lease]] = []

    def dequeue() -> int:
        # The classic design hands out one message per call.
        leased.append([])
        while len(leased[-1]) < shape.batch:
            got = session.dequeue(shape.batch - len(leased[-1]))
            assert got
            leased[-1] += got
        return shape.batch

    def complete() -> int:
        session.complete(leased.pop(0))
        return shape.batch

    found[f"dequeue, {shape.title}"] = meter.costs(dequeue, WARM_UP, calls)
    found[f"complete, {shape.title}"] = meter.costs(complete, WARM_UP, calls)
    return found


class Meter:
    """Reads what a session's backends have used, and how far the log is."""

    def __init__(self, observer: "psycopg.Connection[tuple[object, ...]]", session: Session) -> None:
        self.session = session
        self._observer = observer

    def costs(self, operation: Callable[[], int | None], warm_up: int, calls: int) -> PerMessage:
        """The median of parts of so many calls; an operation returns how many messages it had."""
        for _ in range(warm_up):
            operation()
        parts = [self._part(operation) for _ in range(calls // CALLS_PER_PART)]
        return PerMessage(
            statistics.median(part.cpu_us for part in parts),
            statistics.median(part.wal_bytes for part in parts),
        )

    def _part(self, operation: Callable[[], int | None]) -> PerMessage:
        wal_before, cpu_before = self._wal_bytes(), self._cpu_us()
        messages = sum(operation() or 1 for _ in range(CALLS_PER_PART))
        cpu_us, wal_bytes = self._cpu_us() - cpu_before, self._wal_bytes() - wal_before
        return PerMessage(cpu_us / messages, wal_bytes / messages)

    def _cpu_us(self) -> float:
        """To the nanosecond; of every thread a backend has, which is one."""
        return sum(
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000
            for pid in self.session.backend_pids()
        )

    def _wal_bytes(self) -> int:
        row = self._observer.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
        assert row is not None
        return int(str(row[0]))


CASE = Case(NAME, TITLE, run)
