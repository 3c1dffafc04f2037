"""Sixteen producers create one message per call, all in the same channel."""

from functools import partial

from benchmarks.contenders import Bare, ChannelRow, LonnyMQ
from benchmarks.contenders.contender import Contender
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import measure_creates

TITLE = "create one by one, 16 connections, one channel"
NAME = "create-one-by-one"


def run(harness: Harness) -> list[Row]:
    contenders: list[Contender] = [LonnyMQ(), Bare(), ChannelRow()]
    rates = harness.measure_in_turns(
        NAME, {contender.name: partial(measure, harness, contender) for contender in contenders}
    )
    return [
        Row(NAME, TITLE, against, "messages/s", rates["lonnymq"], rates[against], at_least=bound)
        for against, bound in (("bare", 0.65), ("channel-row", 3.0))
    ]


def measure(harness: Harness, contender: Contender) -> float:
    with harness.install(contender) as dsn:
        return measure_creates(
            contender, dsn, producers=16, channel="tenant", window_s=harness.effort.window_s
        )


CASE = Case(NAME, TITLE, run)
