"""A snapshot is held open, as by a dump, so that no dead row can be removed; rates should not drop."""

import contextlib
from collections.abc import Iterator
from functools import partial

import psycopg

from benchmarks import pages_touched
from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names, measure_cycles

# Number of channels, their description, and their policy. The limits are checked at each release but never
# reached: 100 channels with one message per millisecond are more than a connection can process.
POLICIES: dict[str, tuple[int, str, dict[str, int]]] = {
    "held-snapshot": (10, "10 channels", {}),
    "held-snapshot-capped": (10, "10 capped channels", {"max_concurrency": 50}),
    "held-snapshot-rate-limited": (
        100,
        "100 rate-limited channels",
        {"release_interval_ms": 1, "release_burst": 1_000},
    ),
}


def run(name: str, harness: Harness) -> list[Row]:
    count, kind, policy = POLICIES[name]
    contender = LonnyMQ(policy=policy)
    pages: dict[bool, float] = {}
    rates = harness.measure_in_turns(
        name,
        {
            "fresh": partial(measure, harness, contender, count, pages, is_held=False),
            "held": partial(measure, harness, contender, count, pages, is_held=True),
        },
    )
    row_title = title(kind, harness.effort.messages_before)
    return [
        Row(name, row_title, "no snapshot", "messages/s", rates["held"], rates["fresh"], at_least=0.95),
        pages_touched.row(name, f"{kind}, held snapshot", "no snapshot", pages[True], pages[False]),
    ]


def title(kind: str, before: int = 200_000) -> str:
    return f"create + dequeue + complete, batch 100, {kind}, after {before:,} messages under a held snapshot"


def measure(
    harness: Harness, contender: LonnyMQ, count: int, pages: dict[bool, float], is_held: bool
) -> float:
    channels = channel_names(count)
    with harness.install(contender) as dsn:
        contender.prepare(dsn, channels)
        with snapshot(dsn) if is_held else contextlib.nullcontext():
            rate = measure_cycles(
                contender, dsn, channels, 100, harness.effort.window_s, before=harness.effort.messages_before
            )
            pages[is_held] = pages_touched.per_dequeue_with_backlog(contender, dsn, channels)
            return rate


@contextlib.contextmanager
def snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from pg_class")
        yield


CASES = [Case(name, title(kind), partial(run, name)) for name, (_, kind, _) in POLICIES.items()]
