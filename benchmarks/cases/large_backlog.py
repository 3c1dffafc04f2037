"""A large backlog costs nothing: the same cycle with 10,000 and with a million or more messages waiting."""

from functools import partial

import psycopg

from benchmarks import touched
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.load import channel_names, cycled

TITLE = "create + dequeue + complete, batch 100, 10 channels, with {:,} messages waiting"
NAME = "large-backlog"
SMALL = 10_000


def run(bench: Bench) -> list[Row]:
    rows = []
    pages: dict[int, float] = {}
    for backlog in bench.effort.large_backlogs:
        rates = bench.interleaved(
            NAME,
            {f"{waiting:,} waiting": partial(measure, bench, waiting, pages) for waiting in (SMALL, backlog)},
        )
        small, large = rates.values()
        rows += [
            Row(NAME, TITLE.format(backlog), "10,000", "messages/s", large, small, at_least=0.9),
            touched.row(NAME, f"{backlog:,} messages waiting", "10,000", pages[backlog], pages[SMALL]),
        ]
    return rows


def measure(bench: Bench, waiting: int, pages: dict[int, float]) -> float:
    contender = Ours()
    channels = channel_names(10)
    with bench.installed(contender) as dsn:
        contender.fill(dsn, channels, waiting)
        with psycopg.connect(dsn, autocommit=True) as connection:
            # The end of filling, no part of what a backlog costs: gigabytes are read again and written out.
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")
        rate = cycled(contender, dsn, channels, batch=100, window_s=bench.effort.window_s)
        pages[waiting] = touched.by_dequeue(dsn)
        return rate


CASE = Case(NAME, TITLE.format(1_000_000), run)
