"""A snapshot held open, as by a dump: no dead row can be removed, and nothing may become slower for it."""

import contextlib
from collections.abc import Iterator
from functools import partial

import psycopg

from benchmarks import touched
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.load import channel_names, cycled

# How many channels of which policy. The limits are checked and stamped at each release, and too wide to hold
# anything back: 100 channels of one message per millisecond are more than a connection can do.
POLICIES: dict[str, tuple[int, str, dict[str, int]]] = {
    "held-snapshot": (10, "10 channels", {}),
    "held-snapshot-capped": (10, "10 capped channels", {"max_concurrency": 50}),
    "held-snapshot-rate-limited": (
        100,
        "100 rate-limited channels",
        {"release_interval_ms": 1, "release_burst": 1_000},
    ),
}


def run(name: str, bench: Bench) -> list[Row]:
    count, kind, policy = POLICIES[name]
    contender = Ours(policy=policy)
    pages: dict[bool, float] = {}
    rates = bench.interleaved(
        name,
        {
            "fresh": partial(measure, bench, contender, count, pages, is_held=False),
            "held": partial(measure, bench, contender, count, pages, is_held=True),
        },
    )
    what = title(kind, bench.effort.before)
    return [
        Row(name, what, "no snapshot", "messages/s", rates["held"], rates["fresh"], at_least=0.95),
        touched.row(name, f"{kind}, a held snapshot", "no snapshot", pages[True], pages[False]),
    ]


def title(kind: str, before: int = 200_000) -> str:
    return f"create + dequeue + complete, batch 100, {kind}, after {before:,} messages under a held snapshot"


def measure(bench: Bench, contender: Ours, count: int, pages: dict[bool, float], is_held: bool) -> float:
    channels = channel_names(count)
    with bench.installed(contender) as dsn:
        contender.prepare(dsn, channels)
        with snapshot(dsn) if is_held else contextlib.nullcontext():
            rate = cycled(contender, dsn, channels, 100, bench.effort.window_s, before=bench.effort.before)
            pages[is_held] = touched.with_waiting(contender, dsn, channels)
            return rate


@contextlib.contextmanager
def snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from pg_class")
        yield


CASES = [Case(name, title(kind), partial(run, name)) for name, (_, kind, _) in POLICIES.items()]
