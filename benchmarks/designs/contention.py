"""Eight producers and eight consumers on one channel, which contend for the same row."""

import statistics
from dataclasses import dataclass
from functools import partial

from benchmarks import parallel
from benchmarks.contenders import Bare, ChannelRow, LonnyMQ
from benchmarks.contenders.contender import Contender
from benchmarks.harness import Harness
from benchmarks.load import create, drain, rate

PRODUCERS = CONSUMERS = 8
PUBLISHED = "channel_row: about 1,800 messages/s"
# The design that locks the channel's row has no batches.
CONTENDERS: list[tuple[Contender, int]] = [
    (ChannelRow(), 1),
    (Bare(), 1),
    (LonnyMQ(), 1),
    (Bare(), 100),
    (LonnyMQ(), 100),
]


@dataclass(frozen=True)
class Throughput:
    """Messages per second in each round: created one by one, and completed in batches."""

    design: str
    batch: int
    created: tuple[float, ...]
    completed: tuple[float, ...]

    @property
    def median_completed(self) -> float:
        return statistics.median(self.completed)


def run(harness: Harness) -> list[Throughput]:
    rounds: dict[int, list[tuple[float, float]]] = {number: [] for number in range(len(CONTENDERS))}
    for _ in range(harness.effort.rounds):
        for number, (contender, batch) in enumerate(CONTENDERS):
            created, completed = measure(harness, contender, batch)
            rounds[number].append((created, completed))
            harness.progress(f"  contention: {contender.name}, batch {batch}: {completed:,.0f} completed/s")
    return [
        Throughput(contender.name, batch, *zip(*rounds[number], strict=True))
        for number, (contender, batch) in enumerate(CONTENDERS)
    ]


def measure(harness: Harness, contender: Contender, batch: int) -> tuple[float, float]:
    window_s = harness.effort.window_s
    with harness.install(contender) as dsn:
        producers = [partial(create, contender, dsn, "tenant", window_s)] * PRODUCERS
        consumers = [partial(drain, contender, dsn, batch, window_s)] * CONSUMERS
        tallies = parallel.run([*producers, *consumers])
        return rate(tallies[:PRODUCERS]), rate(tallies[PRODUCERS:])
