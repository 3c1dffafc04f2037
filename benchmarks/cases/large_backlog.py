"""The same cycle with 10,000 and with a million or more messages waiting; rates should not drop."""

from functools import partial

import psycopg

from benchmarks import pages_touched
from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names, measure_cycles

TITLE = "create + dequeue + complete, batch 100, 10 channels, with {:,} messages waiting"
NAME = "large-backlog"
SMALL = 10_000


def run(harness: Harness) -> list[Row]:
    rows = []
    pages: dict[int, float] = {}
    for backlog in harness.effort.large_backlogs:
        rates = harness.measure_in_turns(
            NAME,
            {
                f"{waiting:,} waiting": partial(measure, harness, waiting, pages)
                for waiting in (SMALL, backlog)
            },
        )
        small, large = rates.values()
        rows += [
            Row(NAME, TITLE.format(backlog), "10,000", "messages/s", large, small, at_least=0.95),
            pages_touched.row(NAME, f"{backlog:,} messages waiting", "10,000", pages[backlog], pages[SMALL]),
        ]
    return rows


def measure(harness: Harness, waiting: int, pages: dict[int, float]) -> float:
    contender = LonnyMQ()
    channels = channel_names(10)
    with harness.install(contender) as dsn:
        contender.fill(dsn, channels, waiting)
        with psycopg.connect(dsn, autocommit=True) as connection:
            # Reading and writing gigabytes after the load is not part of the cost of a backlog.
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")
        rate = measure_cycles(contender, dsn, channels, batch=100, window_s=harness.effort.window_s)
        pages[waiting] = pages_touched.per_dequeue(dsn)
        return rate


CASE = Case(NAME, TITLE.format(1_000_000), run)
