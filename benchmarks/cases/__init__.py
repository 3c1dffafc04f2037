"""The cases, in the order of the issue's table; one file each."""

from benchmarks.bench import Case
from benchmarks.cases import (
    drain_many_channels,
    drain_one_channel,
    held_snapshot,
    single_message,
)

CASES: list[Case] = [
    drain_one_channel.CASE,
    drain_many_channels.CASE,
    single_message.CASE,
    *held_snapshot.CASES,
]
