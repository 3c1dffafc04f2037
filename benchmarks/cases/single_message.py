"""One message at a time on one connection: create, dequeue, complete."""

from functools import partial

from benchmarks.contenders import ChannelRow, LonnyMQ
from benchmarks.contenders.contender import Contender
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import measure_cycles

TITLE = "one message at a time: create, dequeue, complete, one connection"
NAME = "single-message"


def run(harness: Harness) -> list[Row]:
    one, two = ChannelRow(has_fast_connection=False), ChannelRow("channel-row on two connections")
    contenders: list[Contender] = [LonnyMQ(), one, two]
    rates = harness.measure_in_turns(
        NAME, {contender.name: partial(measure, harness, contender) for contender in contenders}
    )
    share = rates["lonnymq"] / rates[two.name]
    note = (
        "on one connection only LonnyMQ can dequeue without waiting for the disk; "
        f"{share:.2f} of channel-row with a second connection for dequeue ({rates[two.name]:,.0f})"
    )
    reference = rates[one.name]
    return [Row(NAME, TITLE, one.name, "messages/s", rates["lonnymq"], reference, at_least=1.0, note=note)]


def measure(harness: Harness, contender: Contender) -> float:
    with harness.install(contender) as dsn:
        return measure_cycles(contender, dsn, ["tenant"], batch=1, window_s=harness.effort.window_s)


CASE = Case(NAME, TITLE, run)
