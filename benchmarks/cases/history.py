"""What it costs to remember every finished attempt."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.cases.drain_one_channel import measure
from benchmarks.contenders import Ours

TITLE = 'history "metadata": dequeue + complete, batch 100, 4 connections, one channel'
NAME = "history"


def run(bench: Bench) -> list[Row]:
    rates = bench.interleaved(
        NAME, {mode: partial(measure, bench, Ours(history=mode), 1) for mode in ("off", "metadata")}
    )
    return [Row(NAME, TITLE, "off", "messages/s", rates["metadata"], rates["off"], at_least=0.75)]


CASE = Case(NAME, TITLE, run)
