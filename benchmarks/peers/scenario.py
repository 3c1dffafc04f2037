"""What a scenario is, how much of it is measured, and what it measures with."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.deployment import Stage, staged
from benchmarks.peers.environment import Environment
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.programs.kit import Policy
from benchmarks.peers.services import Place, Services


@dataclass(frozen=True)
class Effort:
    """How much and how long."""

    name: str
    rounds: int
    # Of scenarios that take longer than all the others.
    long_rounds: int
    one_by_one: int
    bulk: int
    drained: int
    # To fill a queue takes no longer, also if it is not full then; nor does the longest one.
    fill_s: float
    long_fill_s: float
    # A drain ends after so long, also if there is more.
    window_s: float
    # In each round; percentiles are taken of all rounds together.
    latencies: int
    backlogs: tuple[int, ...]
    # Messages under the held snapshot before the drain that is measured.
    before: int
    big_tenant: int
    limited_s: float
    # How long a message of a killed worker is waited for.
    recovery_s: float
    costed: int
    # To install a peer in a fresh place, start its workers and stop them; only for the estimate.
    start_s: float = 2.0


EFFORTS = {
    "smoke": Effort(
        name="smoke",
        rounds=1,
        long_rounds=1,
        one_by_one=20,
        bulk=200,
        drained=200,
        fill_s=5.0,
        long_fill_s=5.0,
        window_s=5.0,
        latencies=10,
        backlogs=(100, 200),
        before=200,
        big_tenant=100,
        limited_s=1.0,
        recovery_s=15.0,
        costed=200,
    ),
    "quick": Effort(
        name="quick",
        rounds=1,
        long_rounds=1,
        one_by_one=500,
        bulk=20_000,
        drained=20_000,
        fill_s=4.0,
        long_fill_s=8.0,
        window_s=4.0,
        latencies=100,
        backlogs=(5_000, 50_000),
        before=20_000,
        big_tenant=10_000,
        limited_s=3.0,
        recovery_s=30.0,
        costed=5_000,
    ),
    "standard": Effort(
        name="standard",
        rounds=3,
        long_rounds=2,
        one_by_one=1_000,
        bulk=100_000,
        drained=100_000,
        fill_s=3.0,
        long_fill_s=30.0,
        window_s=4.0,
        latencies=400,
        backlogs=(10_000, 1_000_000),
        before=200_000,
        big_tenant=10_000,
        limited_s=4.0,
        recovery_s=60.0,
        costed=5_000,
    ),
    "full": Effort(
        name="full",
        rounds=5,
        long_rounds=3,
        one_by_one=5_000,
        bulk=100_000,
        drained=100_000,
        fill_s=60.0,
        long_fill_s=600.0,
        window_s=30.0,
        latencies=1_500,
        backlogs=(10_000, 1_000_000),
        before=200_000,
        big_tenant=10_000,
        limited_s=20.0,
        recovery_s=120.0,
        costed=100_000,
    ),
}


@dataclass(frozen=True)
class Metric:
    """One figure of a scenario."""

    key: str
    title: str
    unit: str
    is_higher_better: bool
    # LonnyMQ to the best peer's: at least, or at most if lower is better. None: shown, not judged.
    bound: float | None = 1.0
    # What to say where a peer that was measured has no figure.
    missing: str = "not in the time"
    # As good as it gets, or as can be told: what is better still is not counted as better.
    enough: float | None = None
    # Of the samples of all rounds together; None: the median of the rounds' figures.
    pool: Callable[[Sequence[float]], float] | None = None
    # What must be said beside a round's figure, if anything.
    remark: Callable[["Figures"], str] = lambda figures: ""


# What a peer's measurement yields; None: it did not get there in time.
Figures = Mapping[str, float | None]


class Sampled(dict[str, float | None]):
    """A round's figures, with the single samples that they were made of."""

    def __init__(self, figures: Figures, samples: Sequence[float]) -> None:
        super().__init__(figures)
        self.samples = tuple(samples)


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    metrics: tuple[Metric, ...]
    measure: Callable[["PeerHarness", Peer], Figures]
    # How it is judged, for the reader of its table.
    rule: str
    # Without these a peer has nothing to be measured.
    needs: frozenset[Feature] = frozenset()
    # One peer in one round, roughly, for the estimate.
    lasts_s: Callable[[Effort], float] = lambda effort: effort.start_s + effort.window_s
    is_long: bool = False

    def rounds(self, effort: Effort) -> int:
        return min(effort.rounds, effort.long_rounds) if self.is_long else effort.rounds


@dataclass(frozen=True)
class PeerHarness:
    """What a scenario measures with."""

    services: Services
    effort: Effort
    environments: Mapping[str, Environment]

    @contextlib.contextmanager
    def stage(
        self, peer: Peer, tenants: dict[str, Policy] | None = None, lease_s: int | None = None
    ) -> Iterator[Stage]:
        """A fresh place with this peer in it."""
        with self.services.place(peer.service) as place:
            with staged(peer, self.environments[peer.name], place, tenants or {}, lease_s) as stage:
                yield stage


__all__ = [
    "EFFORTS",
    "Effort",
    "Figures",
    "Metric",
    "PeerHarness",
    "Place",
    "Policy",
    "Sampled",
    "Scenario",
    "Stage",
]
