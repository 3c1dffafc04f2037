"""Defines scenarios: their metrics, how much is measured, and what they measure with."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.deployment import Deployment, deploy
from benchmarks.peers.environment import Environment
from benchmarks.peers.peer import Feature, Peer, Service
from benchmarks.peers.programs.kit import TenantLimits
from benchmarks.peers.services import Endpoint, Services


@dataclass(frozen=True)
class Effort:
    """How long and how much to measure."""

    name: str
    rounds: int
    # Rounds of scenarios that take much longer than the others.
    long_rounds: int
    one_by_one: int
    bulk: int
    drained: int
    # Time limits for filling a queue, normally and for the longest backlog; it may be shorter then.
    fill_s: float
    long_fill_s: float
    # A drain ends after this time even if messages are left.
    window_s: float
    # Messages per round; percentiles are computed over all rounds together.
    latencies: int
    backlogs: tuple[int, ...]
    # Messages processed under a held snapshot before the measured drain.
    messages_before: int
    big_tenant: int
    limited_s: float
    # How long to wait for the messages of a killed worker.
    recovery_s: float
    costed: int
    # The time to install a peer and to start and stop its workers; only for the estimate.
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
        messages_before=200,
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
        messages_before=20_000,
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
        messages_before=200_000,
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
        messages_before=200_000,
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
    # The promised ratio of LonnyMQ's figure to the best peer's: at least, or at most if lower is better.
    # None: the figure is shown but not judged.
    bound: float | None = 1.0
    # Only peers whose messages are on such a server are compared, although all are shown; None: all peers.
    service: Service | None = None
    # Shown if a peer was measured but has no figure.
    missing: str = "not in time"
    # Figures better than this count as equal, because better is not possible or not measurable.
    enough: float | None = None
    # Computes the figure from the samples of all rounds; None: the median of the rounds' figures.
    pool: Callable[[Sequence[float]], float] | None = None
    # A remark to show next to a round's figure, or an empty string.
    remark: Callable[["Figures"], str] = lambda figures: ""


# A peer's figures in one round; None: not reached in time.
Figures = Mapping[str, float | None]


class Sampled(dict[str, float | None]):
    """A round's figures, with the samples from which they were computed."""

    def __init__(self, figures: Figures, samples: Sequence[float]) -> None:
        super().__init__(figures)
        self.samples = tuple(samples)


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    metrics: tuple[Metric, ...]
    measure: Callable[["PeerHarness", Peer], Figures]
    # How the scenario is judged, for readers of its table.
    rule: str
    # Peers without one of these features are not measured.
    needs: frozenset[Feature] = frozenset()
    # Roughly the duration of one round for one peer, for the estimate.
    duration_s: Callable[[Effort], float] = lambda effort: effort.start_s + effort.window_s
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
    def deploy(
        self, peer: Peer, tenants: dict[str, TenantLimits] | None = None, lease_s: int | None = None
    ) -> Iterator[Deployment]:
        """Deploy this peer for one measurement."""
        with self.services.endpoint(peer.service) as endpoint:
            environment = self.environments[peer.name]
            with deploy(peer, environment, endpoint, tenants or {}, lease_s) as deployment:
                yield deployment


__all__ = [
    "EFFORTS",
    "Deployment",
    "Effort",
    "Endpoint",
    "Figures",
    "Metric",
    "PeerHarness",
    "Sampled",
    "Scenario",
    "TenantLimits",
]
