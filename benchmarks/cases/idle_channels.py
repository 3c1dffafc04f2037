"""100,000 tenants that have been served once, of which 1,000 have work."""

from functools import partial

import psycopg

from benchmarks import touched
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.load import channel_names, drained

TITLE = "dequeue + complete, batch 100, 4 connections, 1,000 active channels of 100,000"
NAME = "idle-channels"
ACTIVE = 1_000


def run(bench: Bench) -> list[Row]:
    pages: dict[int, float] = {}
    rates = bench.interleaved(
        NAME,
        {
            "1,000 channels": partial(measure, bench, ACTIVE, pages),
            "100,000 channels": partial(measure, bench, bench.effort.channels, pages),
        },
    )
    few, many = rates.values()
    fewer, more = pages.values()
    return [
        Row(NAME, TITLE, "1,000", "messages/s", many, few, at_least=0.9),
        touched.row(NAME, "1,000 active channels of 100,000", "1,000", more, fewer),
    ]


def measure(bench: Bench, count: int, pages: dict[int, float]) -> float:
    contender = Ours()
    channels = channel_names(count)
    with bench.installed(contender) as dsn:
        # As many messages before in either case: tables that have grown once need not grow again.
        contender.fill(dsn, channels, bench.effort.channels)
        drained(contender, dsn, workers=4, batch=500, window_s=600)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        contender.fill(dsn, channels[:: count // ACTIVE], bench.effort.backlog)
        pages[count] = touched.by_dequeue(dsn)
        return drained(contender, dsn, workers=4, batch=100, window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE, run)
