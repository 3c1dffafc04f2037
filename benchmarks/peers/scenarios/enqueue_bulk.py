"""Many messages at once, by whatever the peer has for that; a slow one is stopped, and its rate stands."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    with harness.stage(peer) as stage:
        return {"rate": stage.enqueue(harness.effort.bulk, window_s=harness.effort.fill_s).per_s}


SCENARIO = Scenario(
    "enqueue-bulk",
    "Bulk enqueue, one producer",
    (Metric("rate", "bulk enqueue", "messages/s", True),),
    measure,
    rule="By the rate.",
    lasts_s=lambda effort: effort.start_s + 0.7 * effort.fill_s,
)
