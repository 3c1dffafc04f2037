"""A snapshot held open, as by a dump or a replica: dead rows stay, and must not be in the way."""

from benchmarks.cases.held_snapshot import snapshot
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario, Stage

BATCH = 100


def measure(bench: Bench, peer: Peer) -> Figures:
    with bench.stage(peer) as stage:
        fresh = drained(bench, stage)
    with bench.stage(peer) as stage, snapshot(stage.place.dsn):
        stage.enqueue(bench.effort.before)
        with stage.crew(2, batch=BATCH) as crew:
            # A slow peer has fewer dead rows then, which is in its favour.
            crew.wait(bench.effort.before, 5 * bench.effort.window_s)
        held = drained(bench, stage)
    return {"held": held, "ratio": held / fresh if fresh else None}


def drained(bench: Bench, stage: Stage) -> float:
    count = bench.effort.drained // 2
    stage.enqueue(count)
    with stage.crew(1, batch=BATCH) as crew:
        crew.wait(count, bench.effort.window_s)
        return crew.meter.rate()


SCENARIO = Scenario(
    "held-snapshot",
    "Drain under a held snapshot, batches of 100, one process",
    (
        Metric("held", "drain under a held snapshot", "messages/s", True),
        Metric("ratio", "held snapshot to none", "", True),
    ),
    measure,
    needs=frozenset({Feature.SNAPSHOT}),
)
