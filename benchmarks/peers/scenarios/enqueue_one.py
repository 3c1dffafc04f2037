"""Messages are enqueued one by one, each durable before the next."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.deploy(peer) as deployment:
        return {"rate": deployment.enqueue(harness.effort.one_by_one, mode="one").per_s}


SCENARIO = Scenario(
    "enqueue-one",
    "Enqueue one by one, one producer",
    (Metric("rate", "enqueue one by one", "messages/s", True, bound=0.8),),
    measure,
    rule="By the rate; at least 0.8 of the best, as a message must be on disk before workers are notified.",
    duration_s=lambda effort: effort.start_s,
)
