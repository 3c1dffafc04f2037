"""What a scenario is, how much of it is measured, and what it measures with."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.peers.environment import Environment
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.programs.kit import Policy
from benchmarks.peers.services import Place, Services
from benchmarks.peers.stage import Stage, staged


@dataclass(frozen=True)
class Effort:
    """How much and how long."""

    name: str
    rounds: int
    one_by_one: int
    bulk: int
    drained: int
    # A drain ends after so long, also if there is more.
    window_s: float
    latencies: int
    backlogs: tuple[int, ...]
    # Messages under the held snapshot before the drain that is measured.
    before: int
    big_tenant: int
    limited_s: float
    # How long a message of a killed worker is waited for.
    recovery_s: float
    costed: int


EFFORTS = {
    "smoke": Effort("smoke", 1, 20, 200, 200, 5.0, 10, (100, 200), 200, 100, 1.0, 15.0, 200),
    "quick": Effort(
        "quick", 1, 500, 20_000, 20_000, 4.0, 100, (5_000, 50_000), 20_000, 10_000, 3.0, 30.0, 5_000
    ),
    "standard": Effort(
        "standard",
        3,
        2_000,
        100_000,
        100_000,
        8.0,
        500,
        (10_000, 200_000),
        200_000,
        10_000,
        10.0,
        90.0,
        20_000,
    ),
    "full": Effort(
        "full",
        5,
        5_000,
        100_000,
        100_000,
        30.0,
        1_500,
        (10_000, 1_000_000),
        200_000,
        10_000,
        20.0,
        120.0,
        100_000,
    ),
}


@dataclass(frozen=True)
class Metric:
    """One figure of a scenario."""

    key: str
    title: str
    unit: str
    is_higher_better: bool
    # Ours to the best peer's: at least, or at most if lower is better. None: shown, not judged.
    bound: float | None = 1.0


# What a peer's measurement yields; None: it did not get there in time.
Figures = Mapping[str, float | None]


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    metrics: tuple[Metric, ...]
    measure: Callable[["Bench", Peer], Figures]
    # Without these a peer has nothing to be measured.
    needs: frozenset[Feature] = frozenset()


@dataclass(frozen=True)
class Bench:
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


__all__ = ["EFFORTS", "Bench", "Effort", "Figures", "Metric", "Place", "Policy", "Scenario", "Stage"]
