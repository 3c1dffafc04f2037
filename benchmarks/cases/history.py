"""The cost of recording every finished attempt in history."""

from functools import partial

from benchmarks.cases.drain_one_channel import measure
from benchmarks.contenders import LonnyMQ
from benchmarks.harness import Case, Harness, Row

TITLE = 'history "metadata": dequeue + complete, batch 100, 4 connections, one channel'
NAME = "history"


def run(harness: Harness) -> list[Row]:
    rates = harness.measure_in_turns(
        NAME, {mode: partial(measure, harness, LonnyMQ(history=mode), 1) for mode in ("off", "metadata")}
    )
    return [Row(NAME, TITLE, "off", "messages/s", rates["metadata"], rates["off"], at_least=0.75)]


CASE = Case(NAME, TITLE, run)
