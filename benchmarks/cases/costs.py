"""The costs that limit the rates: CPU time of the backend and bytes of WAL per message, by operation.

Measured on a single connection. Unlike rates, these figures hardly depend on the machine's load.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.contenders import Bare, ChannelRow, LonnyMQ
from benchmarks.contenders.contender import Contender, Lease, Session
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names

NAME = "costs"
TITLE = "CPU of the backend and WAL, per message and operation"
CPU, WAL = "µs of CPU", "bytes of WAL"
# Calls until plans and pages are cached, and measured calls; their median is the figure.
WARM_UP_CALLS, MEASURED_CALLS = 20, 200
# Calls between two readings of the WAL position, which are queries on the same server.
CALLS_PER_READING = 20


@dataclass(frozen=True)
class PerMessage:
    """What an operation costs per message."""

    cpu_us: float
    wal_bytes: float

    def of(self, unit: str) -> float:
        return self.cpu_us if unit == CPU else self.wal_bytes


@dataclass(frozen=True)
class Shape:
    """How many messages are leased and completed at a time, and in how many channels they are."""

    batch: int
    channels: int

    @property
    def title(self) -> str:
        channels = "one channel" if self.channels == 1 else f"{self.channels:,} channels"
        return f"batch {self.batch}, {channels}"


SHAPES = (Shape(100, 1), Shape(100, 1_000), Shape(1, 1))


def run(harness: Harness) -> list[Row]:
    lonnymq, bare, channel_row = (
        measure(harness, contender) for contender in (LonnyMQ(), Bare(), ChannelRow())
    )
    return [
        Row(NAME, operation, against, unit, value, reference, note=f"{unit}: {operation}")
        for unit in (CPU, WAL)
        for operation in lonnymq
        for against, other in (("bare", bare), ("channel-row", channel_row))
        for value, reference in [(lonnymq[operation].of(unit), other[operation].of(unit))]
    ]


def measure(harness: Harness, contender: Contender) -> dict[str, PerMessage]:
    found: dict[str, PerMessage] = {}
    calls = MEASURED_CALLS if harness.effort.name != "smoke" else CALLS_PER_READING
    for shape in SHAPES:
        with harness.install(contender) as dsn:
            names = channel_names(shape.channels)
            contender.fill(dsn, names, (WARM_UP_CALLS + calls) * shape.batch)
            with psycopg.connect(dsn, autocommit=True) as observer:
                meter = Meter(observer, contender.session(dsn))
                found |= shape_costs(meter, shape, names, calls)
                meter.session.close()
        harness.progress(f"  {NAME} {contender.name}, {shape.title}")
    return found


def shape_costs(meter: "Meter", shape: Shape, names: Sequence[str], calls: int) -> dict[str, PerMessage]:
    session, found = meter.session, {}
    if shape.batch == 1:
        found["create, one at a time"] = meter.costs(lambda: session.create(names[0]), WARM_UP_CALLS, calls)
    leased: list[list[Lease]] = []

    def dequeue() -> int:
        # The channel-row design leases one message per call.
        leased.append([])
        while len(leased[-1]) < shape.batch:
            got = session.dequeue(shape.batch - len(leased[-1]))
            assert got
            leased[-1] += got
        return shape.batch

    def complete() -> int:
        session.complete(leased.pop(0))
        return shape.batch

    found[f"dequeue, {shape.title}"] = meter.costs(dequeue, WARM_UP_CALLS, calls)
    found[f"complete, {shape.title}"] = meter.costs(complete, WARM_UP_CALLS, calls)
    return found


class Meter:
    """Reads the CPU time of a session's backends and the WAL position."""

    def __init__(self, observer: "psycopg.Connection[tuple[object, ...]]", session: Session) -> None:
        self.session = session
        self._observer = observer

    def costs(self, operation: Callable[[], int | None], warm_up: int, calls: int) -> PerMessage:
        """Return the median costs per message; `operation` returns how many messages it handled."""
        for _ in range(warm_up):
            operation()
        readings = [self._read(operation) for _ in range(calls // CALLS_PER_READING)]
        return PerMessage(
            statistics.median(reading.cpu_us for reading in readings),
            statistics.median(reading.wal_bytes for reading in readings),
        )

    def _read(self, operation: Callable[[], int | None]) -> PerMessage:
        wal_before, cpu_before = self._wal_bytes(), self._cpu_us()
        messages = sum(operation() or 1 for _ in range(CALLS_PER_READING))
        cpu_us, wal_bytes = self._cpu_us() - cpu_before, self._wal_bytes() - wal_before
        return PerMessage(cpu_us / messages, wal_bytes / messages)

    def _cpu_us(self) -> float:
        """Return the CPU time of the main thread of each backend, its only one."""
        return sum(
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000
            for pid in self.session.backend_pids()
        )

    def _wal_bytes(self) -> int:
        row = self._observer.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
        assert row is not None
        return int(str(row[0]))


CASE = Case(NAME, TITLE, run)
