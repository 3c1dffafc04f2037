"""Dequeue and complete in batches of 100 on four connections, with all messages in one channel."""

from functools import partial

from benchmarks.contenders import Bare, ChannelRow, LonnyMQ
from benchmarks.contenders.contender import Contender
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names, measure_drain

TITLE = "dequeue + complete, batch 100, 4 connections, one channel"
NAME = "drain-one-channel"


def run(harness: Harness) -> list[Row]:
    return run_over(harness, NAME, TITLE, channels=1, at_least={"bare": 0.7, "channel-row": 30.0})


def run_over(harness: Harness, name: str, title: str, channels: int, at_least: dict[str, float]) -> list[Row]:
    contenders: list[Contender] = [LonnyMQ(), Bare(), ChannelRow()]
    rates = harness.measure_in_turns(
        name, {contender.name: partial(measure, harness, contender, channels) for contender in contenders}
    )
    return [
        Row(name, title, against, "messages/s", rates["lonnymq"], rates[against], at_least=bound)
        for against, bound in at_least.items()
    ]


def measure(harness: Harness, contender: Contender, channels: int) -> float:
    # The channel-row design leases one message per call, so a smaller backlog lasts for the window.
    backlog = harness.effort.backlog // (10 if contender.name == "channel-row" else 1)
    with harness.install(contender) as dsn:
        contender.fill(dsn, channel_names(channels), backlog)
        return measure_drain(contender, dsn, workers=4, batch=100, window_s=harness.effort.window_s)


CASE = Case(NAME, TITLE, run)
