"""Measures a design at one size: loads it, brings it into its worst case, and picks messages."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.contenders.install_lonnymq import install_schema
from benchmarks.designs.design import Design
from benchmarks.designs.pick_plan import PickPlan, explain
from benchmarks.harness import RunConditions
from benchmarks.results import current_conditions
from benchmarks.server import Server

MILLION = 1_000_000
# After this many picks, statements in functions have their final plans and the pages are in memory.
WARM_UP_PICKS = 20
EXPLAINED_PICKS = 7
# Picks and everything around them may take this many times as long as picks are measured for.
TOTAL_TIME_FACTOR = 5
# A pick that takes longer is not repeated.
SLOW_PICK_S = 20.0
SIZES = """
    select coalesce(sum(pg_table_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"""

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Effort:
    """How many rows to load, and how long to repeat picks."""

    name: str
    sizes: tuple[int, ...]
    rounds: int
    picks_for_s: float
    max_picks: int = 300
    min_picks: int = 3


EFFORTS = {
    "quick": Effort("quick", (10_000, 100_000), 1, 0.7),
    "standard": Effort("standard", (10_000, 100_000, MILLION), 3, 3.0),
    "full": Effort("full", (10_000, 100_000, MILLION, 10 * MILLION), 3, 5.0),
    "smoke": Effort("smoke", (3_000, 6_000), 1, 0.05, max_picks=5, min_picks=2),
}


@dataclass(frozen=True)
class Measurement:
    """The figures of a design at one size."""

    rows: int
    pick_ms: tuple[float, ...]
    # The rate of each million rows, in their order.
    load_rows_per_s: tuple[float, ...]
    table_bytes: int
    index_bytes: int
    plan: PickPlan
    measured: RunConditions
    # Seconds of each phase, to estimate how long a larger table takes.
    took_s: dict[str, float]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.pick_ms)


def measure(
    server: Server, design: Design, rows: int, effort: Effort, progress: Callable[[str], None]
) -> Measurement:
    stopwatch = Stopwatch()
    with server.database() as dsn, connect(dsn) as connection:
        install(connection, design)
        run(connection, design.statements("create", rows=rows))
        with stopwatch.phase("load"):
            rates = tuple(load(connection, design, rows))
        with stopwatch.phase("prepare"):
            run(connection, design.statements("prepare", rows=rows))
        with held_snapshot(dsn) if design.is_snapshot_held else contextlib.nullcontext():
            with stopwatch.phase("worsen"):
                run(connection, design.statements("worsen", rows=rows))
            with stopwatch.phase("vacuum"):
                connection.execute("vacuum analyze")
            [(table_bytes, index_bytes)] = connection.execute(SIZES).fetchall()
            with stopwatch.phase("pick"):
                picks = tuple(pick(connection, design, rows, effort))
                plan = typical_plan(connection, design, rows, is_slow=picks[-1] > effort.picks_for_s * 1000)
    measurement = Measurement(
        rows, picks, rates, int(table_bytes), int(index_bytes), plan, current_conditions(), stopwatch.took_s
    )
    phases = ", ".join(f"{name} {took_s:.0f} s" for name, took_s in stopwatch.took_s.items() if took_s >= 0.5)
    progress(
        f"  {design.name} at {rows:,}: {measurement.median_ms:,.2f} ms, {len(picks)} picks, "
        f"{plan.pages:,} pages, loaded at {statistics.median(rates):,.0f} rows/s; {phases}"
    )
    return measurement


class Stopwatch:
    """Measures how long each phase takes."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began_at = time.monotonic()
        yield
        self.took_s[name] = time.monotonic() - began_at


def connect(dsn: str) -> Connection:
    # A lease need not be durable in any design. JIT compilation takes longer than most picks.
    options = "-c synchronous_commit=off -c jit=off -c client_min_messages=warning"
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0, options=options)


def install(connection: Connection, design: Design) -> None:
    if design.is_ours:
        install_schema(connection, "lonnymq")


def run(connection: Connection, statements: list[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode(), prepare=False)


def load(connection: Connection, design: Design, rows: int) -> Iterator[float]:
    """Load the rows, a million at a time, and yield the rate of each million."""
    for first in range(1, rows + 1, MILLION):
        last = min(rows, first + MILLION - 1)
        began_at = time.monotonic()
        run(connection, design.statements("load", rows=rows, first=first, last=last))
        yield (last - first + 1) / (time.monotonic() - began_at)


def pick(connection: Connection, design: Design, rows: int, effort: Effort) -> Iterator[float]:
    """Yield the milliseconds of each pick, as seen by the client, until the time for picks is used up.

    Replenishing messages is not timed, but the total time is limited too.
    """
    statements = [statement.encode() for statement in design.statements("pick", rows=rows)]
    replenish = design.statements("replenish", rows=rows)
    picks, spent_s, began_at = -WARM_UP_PICKS, 0.0, time.monotonic()
    while picks < effort.max_picks:
        took_s = time_pick(connection, statements, f"{design.name} at {rows:,} rows")
        run(connection, replenish)
        picks, spent_s = picks + 1, spent_s + took_s
        if picks <= 0:
            # Slow picks need no further warm-up.
            if spent_s < effort.picks_for_s:
                continue
            picks = 1
        if picks == 1:
            spent_s, began_at = took_s, time.monotonic()
        yield took_s * 1000
        is_over = max(spent_s, (time.monotonic() - began_at) / TOTAL_TIME_FACTOR) > effort.picks_for_s
        if took_s > SLOW_PICK_S or (is_over and picks >= effort.min_picks):
            return


def time_pick(connection: Connection, statements: list[bytes], where: str) -> float:
    """Return how many seconds a pick took; raise if it found no message."""
    began_at = time.perf_counter()
    for statement in statements:
        answer = connection.execute(statement)
    took_s = time.perf_counter() - began_at
    if answer.rownumber is None or answer.fetchone() in (None, (None, None)):
        raise RuntimeError(f"{where}: no message left to pick")
    return took_s


def typical_plan(connection: Connection, design: Design, rows: int, is_slow: bool) -> PickPlan:
    """Return the plan with the median number of pages, because an occasional pick reads more."""
    plans = []
    for _ in range(1 if is_slow else EXPLAINED_PICKS):
        plans.append(explain(connection, design.statements("pick", rows=rows)))
        run(connection, design.statements("replenish", rows=rows))
    return sorted(plans, key=lambda plan: plan.pages)[len(plans) // 2]


@contextlib.contextmanager
def held_snapshot(dsn: str) -> Iterator[None]:
    """Hold a snapshot in another session, so that vacuum cannot remove dead rows."""
    with connect(dsn) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select count(*) from pg_class")
        yield
        other.execute("rollback")
