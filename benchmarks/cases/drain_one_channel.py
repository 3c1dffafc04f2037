"""Dequeue and complete in batches of 100 on four connections, everything in one channel."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Bare, ChannelRow, Ours
from benchmarks.contenders.contender import Contender
from benchmarks.load import channel_names, drained

TITLE = "dequeue + complete, batch 100, 4 connections, one channel"
NAME = "drain-one-channel"


def run(bench: Bench) -> list[Row]:
    return run_over(bench, NAME, TITLE, channels=1, at_least={"bare": 0.8, "channel-row": 30.0})


def run_over(bench: Bench, name: str, title: str, channels: int, at_least: dict[str, float]) -> list[Row]:
    contenders: list[Contender] = [Ours(), Bare(), ChannelRow()]
    rates = bench.interleaved(
        name, {contender.name: partial(measure, bench, contender, channels) for contender in contenders}
    )
    return [
        Row(name, title, against, "messages/s", rates["lonnymq"], rates[against], at_least=bound)
        for against, bound in at_least.items()
    ]


def measure(bench: Bench, contender: Contender, channels: int) -> float:
    # The classic design hands out one message per call: a smaller backlog lasts for the window.
    backlog = bench.effort.backlog // (10 if contender.name == "channel-row" else 1)
    with bench.installed(contender) as dsn:
        contender.fill(dsn, channel_names(channels), backlog)
        return drained(contender, dsn, workers=4, batch=100, window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE, run)
