"""Bulk enqueue by the peer's own means, for a limited time; the rate is that of the messages sent."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.deploy(peer) as deployment:
        return {"rate": deployment.enqueue(harness.effort.bulk, window_s=harness.effort.fill_s).per_s}


SCENARIO = Scenario(
    "enqueue-bulk",
    "Bulk enqueue, one producer",
    (Metric("rate", "bulk enqueue", "messages/s", True),),
    measure,
    rule="By the rate.",
    duration_s=lambda effort: effort.start_s + 0.7 * effort.fill_s,
)
