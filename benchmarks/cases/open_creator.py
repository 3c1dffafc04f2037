"""A transaction that created in the channel stays open, as a slow business transaction does."""

import contextlib
from collections.abc import Iterator
from functools import partial

import psycopg

from benchmarks import touched
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Ours
from benchmarks.contenders.contender import PAYLOAD
from benchmarks.load import cycled

TITLE = "create + dequeue + complete, batch 100, 4 connections, one channel, beside an open transaction"
NAME = "open-creator"
CHANNEL = "tenant"


def run(bench: Bench) -> list[Row]:
    pages: dict[bool, float] = {}
    rates = bench.interleaved(
        NAME,
        {
            "alone": partial(measure, bench, pages, is_beside=False),
            "beside": partial(measure, bench, pages, is_beside=True),
        },
    )
    return [
        Row(NAME, TITLE, "alone", "messages/s", rates["beside"], rates["alone"], at_least=0.9),
        touched.row(NAME, "one channel, beside an open transaction", "alone", pages[True], pages[False]),
    ]


def measure(bench: Bench, pages: dict[bool, float], is_beside: bool) -> float:
    contender = Ours()
    with bench.installed(contender) as dsn:
        with open_transaction(dsn) if is_beside else contextlib.nullcontext():
            rate = cycled(contender, dsn, [CHANNEL], 100, bench.effort.window_s, workers=4)
            pages[is_beside] = touched.with_waiting(contender, dsn, [CHANNEL])
            return rate


@contextlib.contextmanager
def open_transaction(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.execute("select lonnymq.message_create(%s, %s)", (CHANNEL, PAYLOAD))
        yield


CASE = Case(NAME, TITLE, run)
