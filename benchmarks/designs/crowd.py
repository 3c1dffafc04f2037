"""Eight producers and eight consumers on one channel: everybody wants the same row."""

import statistics
from dataclasses import dataclass
from functools import partial

from benchmarks import fleet
from benchmarks.bench import Bench
from benchmarks.contenders import Bare, ChannelRow, Ours
from benchmarks.contenders.contender import Contender
from benchmarks.load import create, drain, rate

PRODUCERS = CONSUMERS = 8
PUBLISHED = "channel_row: about 1,800 messages/s"
# The design with locks on the channel's row has no batches.
CROWDS: list[tuple[Contender, int]] = [
    (ChannelRow(), 1),
    (Bare(), 1),
    (Ours(), 1),
    (Bare(), 100),
    (Ours(), 100),
]


@dataclass(frozen=True)
class Throughput:
    """Messages per second, created one by one and completed in batches, in each round."""

    design: str
    batch: int
    created: tuple[float, ...]
    completed: tuple[float, ...]

    @property
    def median_completed(self) -> float:
        return statistics.median(self.completed)


def run(bench: Bench) -> list[Throughput]:
    rounds: dict[int, list[tuple[float, float]]] = {number: [] for number in range(len(CROWDS))}
    for _ in range(bench.effort.rounds):
        for number, (contender, batch) in enumerate(CROWDS):
            created, completed = measure(bench, contender, batch)
            rounds[number].append((created, completed))
            bench.progress(f"  crowd {contender.name}, batch {batch}: {completed:,.0f} completed/s")
    return [
        Throughput(contender.name, batch, *zip(*rounds[number], strict=True))
        for number, (contender, batch) in enumerate(CROWDS)
    ]


def measure(bench: Bench, contender: Contender, batch: int) -> tuple[float, float]:
    window_s = bench.effort.window_s
    with bench.installed(contender) as dsn:
        producers = [partial(create, contender, dsn, "tenant", window_s)] * PRODUCERS
        consumers = [partial(drain, contender, dsn, batch, window_s)] * CONSUMERS
        tallies = fleet.run([*producers, *consumers])
        return rate(tallies[:PRODUCERS]), rate(tallies[PRODUCERS:])
