"""One message after the other, each durable before the next."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario


def measure(bench: Bench, peer: Peer) -> Figures:
    with bench.stage(peer) as stage:
        return {"rate": stage.enqueue(bench.effort.one_by_one, how="one").per_s}


SCENARIO = Scenario(
    "enqueue-one",
    "Enqueue one by one, one producer",
    (Metric("rate", "enqueue one by one", "messages/s", True, bound=0.8),),
    measure,
    rule="By the rate; at least 0.8 of the best, since a message that others may hear of has to be on disk.",
    lasts_s=lambda effort: effort.start_s,
)
