"""A large backlog costs nothing: the same cycle with 10,000 and with a million or more messages waiting."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.load import channel_names, cycled

TITLE = "create + dequeue + complete, batch 100, 10 channels, with {:,} messages waiting"
NAME = "large-backlog"
SMALL = 10_000
ONCE_FROM = 10_000_000


def run(bench: Bench) -> list[Row]:
    rows = []
    for backlog in bench.effort.large_backlogs:
        rates = bench.interleaved(
            NAME,
            {f"{waiting:,} waiting": partial(measure, bench, waiting) for waiting in (SMALL, backlog)},
            rounds=1 if backlog >= ONCE_FROM else None,
        )
        small, large = rates.values()
        rows.append(Row(NAME, TITLE.format(backlog), "10,000", "messages/s", large, small, at_least=0.9))
    return rows


def measure(bench: Bench, waiting: int) -> float:
    contender = Ours()
    channels = channel_names(10)
    with bench.installed(contender) as dsn:
        contender.fill(dsn, channels, waiting)
        return cycled(contender, dsn, channels, batch=100, window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE.format(1_000_000), run)
