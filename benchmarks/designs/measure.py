"""One design at one size: load it, bring it into its worst case, pick, and look at what that cost."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.bench import Moment
from benchmarks.contenders.ours_install import install_schema
from benchmarks.designs.design import Design
from benchmarks.designs.plan import Plan, explained
from benchmarks.results import moment
from benchmarks.server import Server

MILLION = 1_000_000
# Statements inside functions have settled on their plans by then, and what they touch is in memory.
WARM_UP_PICKS = 20
PLANS = 7
# Of the time for picks, how often it may go by with all that belongs to them.
PATIENCE = 5
# What takes longer is picked once.
ENOUGH_S = 20.0
SIZES = """
    select coalesce(sum(pg_table_size(c.oid)), 0), coalesce(sum(pg_indexes_size(c.oid)), 0)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"""

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Effort:
    """How many rows, and how long picks are repeated."""

    name: str
    sizes: tuple[int, ...]
    rounds: int
    picks_for_s: float
    most_picks: int = 300
    least_picks: int = 3


EFFORTS = {
    "quick": Effort("quick", (10_000, 100_000), 1, 0.7),
    "standard": Effort("standard", (10_000, 100_000, MILLION), 3, 3.0),
    "full": Effort("full", (10_000, 100_000, MILLION, 10 * MILLION), 3, 5.0),
    "smoke": Effort("smoke", (3_000, 6_000), 1, 0.05, most_picks=5, least_picks=2),
}


@dataclass(frozen=True)
class Measurement:
    """What one design did at one size."""

    rows: int
    pick_ms: tuple[float, ...]
    # Of each million, one after the other; fewer where there are fewer rows.
    load_rows_per_s: tuple[float, ...]
    table_bytes: int
    index_bytes: int
    plan: Plan
    measured: Moment
    # Seconds of each part: what a larger table will take is mostly in one of them.
    took_s: dict[str, float]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.pick_ms)


def measure(
    server: Server, design: Design, rows: int, effort: Effort, progress: Callable[[str], None]
) -> Measurement:
    clock = Clock()
    with server.database() as dsn, connect(dsn) as connection:
        install(connection, design)
        run(connection, design.statements("create", rows=rows))
        with clock.part("load"):
            rates = tuple(load(connection, design, rows))
        with clock.part("prepare"):
            run(connection, design.statements("prepare", rows=rows))
        with held_snapshot(dsn) if design.is_snapshot_held else contextlib.nullcontext():
            with clock.part("worsen"):
                run(connection, design.statements("worsen", rows=rows))
            with clock.part("vacuum"):
                connection.execute("vacuum analyze")
            [(table_bytes, index_bytes)] = connection.execute(SIZES).fetchall()
            with clock.part("pick"):
                picks = tuple(pick(connection, design, rows, effort))
                plan = typical_plan(connection, design, rows, is_slow=picks[-1] > effort.picks_for_s * 1000)
    measurement = Measurement(
        rows, picks, rates, int(table_bytes), int(index_bytes), plan, moment(), clock.took_s
    )
    parts = ", ".join(f"{name} {took_s:.0f} s" for name, took_s in clock.took_s.items() if took_s >= 0.5)
    progress(
        f"  {design.name} at {rows:,}: {measurement.median_ms:,.2f} ms, {len(picks)} picks, "
        f"{plan.pages:,} pages, loaded at {statistics.median(rates):,.0f} rows/s; {parts}"
    )
    return measurement


class Clock:
    """How long each part took."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        began_at = time.monotonic()
        yield
        self.took_s[name] = time.monotonic() - began_at


def connect(dsn: str) -> Connection:
    # Leasing needs no fsync, in no design. Compiling a plan takes longer than most of them run.
    options = "-c synchronous_commit=off -c jit=off -c client_min_messages=warning"
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0, options=options)


def install(connection: Connection, design: Design) -> None:
    if design.is_ours:
        install_schema(connection, "lonnymq")


def run(connection: Connection, statements: list[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode(), prepare=False)


def load(connection: Connection, design: Design, rows: int) -> Iterator[float]:
    """Load the rows, a million at a time, and yield the rate of each."""
    for first in range(1, rows + 1, MILLION):
        last = min(rows, first + MILLION - 1)
        began_at = time.monotonic()
        run(connection, design.statements("load", rows=rows, first=first, last=last))
        yield (last - first + 1) / (time.monotonic() - began_at)


def pick(connection: Connection, design: Design, rows: int, effort: Effort) -> Iterator[float]:
    """Yield the milliseconds of each pick, as its client sees them, until they took the time together.

    What belongs to a pick, as putting another message there, is not counted, but has an end too.
    """
    statements = [statement.encode() for statement in design.statements("pick", rows=rows)]
    renewal = design.statements("renew", rows=rows)
    picks, spent_s, began_at = -WARM_UP_PICKS, 0.0, time.monotonic()
    while picks < effort.most_picks:
        took_s = one_pick(connection, statements, f"{design.name} at {rows:,} rows")
        run(connection, renewal)
        picks, spent_s = picks + 1, spent_s + took_s
        if picks <= 0:
            # What takes that long needs no warm-up, or no longer one.
            if spent_s < effort.picks_for_s:
                continue
            picks = 1
        if picks == 1:
            spent_s, began_at = took_s, time.monotonic()
        yield took_s * 1000
        is_over = max(spent_s, (time.monotonic() - began_at) / PATIENCE) > effort.picks_for_s
        if took_s > ENOUGH_S or (is_over and picks >= effort.least_picks):
            return


def one_pick(connection: Connection, statements: list[bytes], where: str) -> float:
    """Return the seconds that one took; a pick that finds nothing is no pick."""
    began_at = time.perf_counter()
    for statement in statements:
        answer = connection.execute(statement)
    took_s = time.perf_counter() - began_at
    if answer.rownumber is None or answer.fetchone() in (None, (None, None)):
        raise RuntimeError(f"{where} had nothing to pick")
    return took_s


def typical_plan(connection: Connection, design: Design, rows: int, is_slow: bool) -> Plan:
    """Return the plan of the pick that touches a middling number of pages: now and then one looks further."""
    plans = []
    for _ in range(1 if is_slow else PLANS):
        plans.append(explained(connection, design.statements("pick", rows=rows)))
        run(connection, design.statements("renew", rows=rows))
    return sorted(plans, key=lambda plan: plan.pages)[len(plans) // 2]


@contextlib.contextmanager
def held_snapshot(dsn: str) -> Iterator[None]:
    """Somebody else's long transaction: vacuum may not remove what it could still see."""
    with connect(dsn) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select count(*) from pg_class")
        yield
        other.execute("rollback")
