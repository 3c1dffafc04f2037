"""A transaction that created a message in the channel stays open, like a slow business transaction."""

import contextlib
from collections.abc import Iterator
from functools import partial

import psycopg

from benchmarks import pages_touched
from benchmarks.contenders import LonnyMQ
from benchmarks.contenders.contender import PAYLOAD
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import measure_cycles

TITLE = "create + dequeue + complete, batch 100, 4 connections, one channel, during an open transaction"
NAME = "open-transaction"
CHANNEL = "tenant"


def run(harness: Harness) -> list[Row]:
    pages: dict[bool, float] = {}
    rates = harness.measure_in_turns(
        NAME,
        {
            "no transaction": partial(measure, harness, pages, is_open=False),
            "open": partial(measure, harness, pages, is_open=True),
        },
    )
    return [
        Row(
            NAME, TITLE, "no transaction", "messages/s", rates["open"], rates["no transaction"], at_least=0.95
        ),
        pages_touched.row(
            NAME, "one channel, during an open transaction", "no transaction", pages[True], pages[False]
        ),
    ]


def measure(harness: Harness, pages: dict[bool, float], is_open: bool) -> float:
    contender = LonnyMQ()
    with harness.install(contender) as dsn:
        with open_transaction(dsn) if is_open else contextlib.nullcontext():
            rate = measure_cycles(contender, dsn, [CHANNEL], 100, harness.effort.window_s, workers=4)
            pages[is_open] = pages_touched.per_dequeue_with_backlog(contender, dsn, [CHANNEL])
            return rate


@contextlib.contextmanager
def open_transaction(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.execute("select lonnymq.message_create(%s, %s)", (CHANNEL, PAYLOAD))
        yield


CASE = Case(NAME, TITLE, run)
