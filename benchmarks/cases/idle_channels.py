"""100,000 channels that have been served once, of which 1,000 have messages."""

from functools import partial

import psycopg

from benchmarks import pages_touched
from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names, measure_drain

TITLE = "dequeue + complete, batch 100, 4 connections, 1,000 active channels of 100,000"
NAME = "idle-channels"
ACTIVE = 1_000


def run(harness: Harness) -> list[Row]:
    pages: dict[int, float] = {}
    rates = harness.measure_in_turns(
        NAME,
        {
            "1,000 channels": partial(measure, harness, ACTIVE, pages),
            "100,000 channels": partial(measure, harness, harness.effort.channels, pages),
        },
    )
    few, many = rates.values()
    fewer, more = pages.values()
    return [
        Row(NAME, TITLE, "1,000", "messages/s", many, few, at_least=0.9),
        pages_touched.row(NAME, "1,000 active channels of 100,000", "1,000", more, fewer),
    ]


def measure(harness: Harness, count: int, pages: dict[int, float]) -> float:
    contender = LonnyMQ()
    channels = channel_names(count)
    with harness.install(contender) as dsn:
        # The same number of messages in both cases, so that the tables have the same size.
        contender.fill(dsn, channels, harness.effort.channels)
        measure_drain(contender, dsn, workers=4, batch=500, window_s=600)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        contender.fill(dsn, channels[:: count // ACTIVE], harness.effort.backlog)
        pages[count] = pages_touched.per_dequeue(dsn)
        return measure_drain(contender, dsn, workers=4, batch=100, window_s=harness.effort.window_s)


CASE = Case(NAME, TITLE, run)
