"""One message after the other, each durable before the next."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.stage(peer) as stage:
        return {"rate": stage.enqueue(harness.effort.one_by_one, how="one").per_s}


SCENARIO = Scenario(
    "enqueue-one",
    "Enqueue one by one, one producer",
    (Metric("rate", "enqueue one by one", "messages/s", True, bound=0.8),),
    measure,
    rule="By the rate; at least 0.8 of the best, since a message that others may hear of has to be on disk.",
    lasts_s=lambda effort: effort.start_s,
)
