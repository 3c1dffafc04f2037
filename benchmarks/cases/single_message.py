"""One message at a time on one connection: create, dequeue, complete."""

from functools import partial

from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import ChannelRow, Ours
from benchmarks.contenders.contender import Contender
from benchmarks.load import cycled

TITLE = "one message at a time: create, dequeue, complete, one connection"
NAME = "single-message"


def run(bench: Bench) -> list[Row]:
    one, two = ChannelRow(has_fast_connection=False), ChannelRow("channel-row on two connections")
    contenders: list[Contender] = [Ours(), one, two]
    rates = bench.interleaved(
        NAME, {contender.name: partial(measure, bench, contender) for contender in contenders}
    )
    share = rates["lonnymq"] / rates[two.name]
    note = (
        "on one connection, where ours alone can dequeue without waiting for the disk; "
        f"{share:.2f} of channel-row with a second connection for that ({rates[two.name]:,.0f})"
    )
    reference = rates[one.name]
    return [Row(NAME, TITLE, one.name, "messages/s", rates["lonnymq"], reference, at_least=1.0, note=note)]


def measure(bench: Bench, contender: Contender) -> float:
    with bench.installed(contender) as dsn:
        return cycled(contender, dsn, ["tenant"], batch=1, window_s=bench.effort.window_s)


CASE = Case(NAME, TITLE, run)
