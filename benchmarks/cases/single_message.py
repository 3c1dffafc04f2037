"""One message at a time on one connection: create, dequeue, complete."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import ChannelRow, Ours
from benchmarks.contenders.contender import Contender
from benchmarks.load import cycled

TITLE = "one message at a time: create, dequeue, complete, one connection"
NAME = "single-message"


def run(bench: Bench) -> list[Row]:
    contenders: list[Contender] = [Ours(), ChannelRow()]
    rates = bench.interleaved(
        NAME, {contender.name: partial(measure, bench, contender) for contender in contenders}
    )
    return [
        Row(NAME, TITLE, "channel-row", "messages/s", rates["lonnymq"], rates["channel-row"], at_least=1.0)
    ]


def measure(bench: Bench, contender: Contender) -> float:
    with bench.installed(contender) as dsn:
        return cycled(contender, dsn, ["tenant"], batch=1, window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE, run)
