"""Measures all peers in turns, round by round, because the machine's speed varies."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.peers.deployment import ProgramFailed
from benchmarks.peers.environment import Environment, NotInstallable, install
from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Effort, Figures, PeerHarness, Scenario
from benchmarks.peers.services import Services

Progress = Callable[[str], None]


@dataclass
class Outcome:
    """A peer in a scenario: the figures of each round, or why there are none."""

    rounds: list[Figures] = field(default_factory=list)
    absent: str = ""
    # Duration of each round, including installation and cleanup.
    took_s: list[float] = field(default_factory=list)


# By the peer's name.
Outcomes = dict[str, Outcome]


def install_peers(
    peers: Sequence[Peer], services: Services, progress: Progress
) -> tuple[dict[str, Environment], dict[str, str]]:
    """Install the peers; return the environments, and the reasons why others cannot be installed."""
    environments, reasons = {}, {}
    for peer in peers:
        progress(f"  {peer.name}: {' '.join(peer.packages) or 'this checkout'}")
        try:
            services.require(peer.service)
            environments[peer.name] = install(peer)
        except NotInstallable as error:
            reasons[peer.name] = str(error)
            progress(f"  {peer.name} is skipped: {error}")
    return environments, reasons


def measure_scenario(
    harness: PeerHarness, scenario: Scenario, peers: Sequence[Peer], progress: Progress
) -> Outcomes:
    outcomes = {peer.name: Outcome(absent=missing_features(scenario, peer)) for peer in peers}
    rounds = scenario.rounds(harness.effort)
    for number in range(rounds):
        for peer in peers:
            outcome = outcomes[peer.name]
            if outcome.absent:
                continue
            began_at = time.monotonic()
            try:
                figures = scenario.measure(harness, peer)
            except ProgramFailed as error:
                outcome.absent = f"failed: {str(error).strip().splitlines()[-1][:300]}"
                progress(f"  {scenario.name} {peer.name} failed: {error}")
                continue
            outcome.rounds.append(figures)
            took_s = time.monotonic() - began_at
            outcome.took_s.append(took_s)
            summary = ", ".join(f"{key} {format_value(value)}" for key, value in figures.items())
            progress(f"  {scenario.name} {number + 1}/{rounds} {peer.name}: {summary} ({took_s:.0f} s)")
    return outcomes


def estimate_s(effort: Effort, scenarios: Sequence[Scenario], peers: Sequence[Peer]) -> float:
    """Return roughly how many seconds a run will take on an idle machine."""
    return sum(
        scenario.rounds(effort) * scenario.duration_s(effort)
        for scenario in scenarios
        for peer in peers
        if not missing_features(scenario, peer)
    )


def missing_features(scenario: Scenario, peer: Peer) -> str:
    missing = sorted(scenario.needs - peer.offers)
    return f"no such feature: {', '.join(missing)}" if missing else ""


def format_value(value: float | None) -> str:
    if value is None:
        return "not in time"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
