"""Sixteen producers that create one message per call, all in the same channel."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Bare, ChannelRow, Ours
from benchmarks.contenders.contender import Contender
from benchmarks.load import created

TITLE = "create one by one, 16 connections, one channel"
NAME = "create-one-by-one"


def run(bench: Bench) -> list[Row]:
    contenders: list[Contender] = [Ours(), Bare(), ChannelRow()]
    rates = bench.interleaved(
        NAME, {contender.name: partial(measure, bench, contender) for contender in contenders}
    )
    return [
        Row(NAME, TITLE, against, "messages/s", rates["lonnymq"], rates[against], at_least=bound)
        for against, bound in (("bare", 0.7), ("channel-row", 3.0))
    ]


def measure(bench: Bench, contender: Contender) -> float:
    with bench.installed(contender) as dsn:
        return created(contender, dsn, producers=16, channel="tenant", window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE, run)
