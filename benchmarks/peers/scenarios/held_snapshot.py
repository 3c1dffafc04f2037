"""A snapshot held open, as by a dump or a replica: dead rows stay, and must not be in the way."""

from benchmarks.cases.held_snapshot import snapshot
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario, Stage

BATCH = 100


def measure(bench: Bench, peer: Peer) -> Figures:
    with bench.stage(peer) as stage:
        fresh = drained(bench, stage)
    with bench.stage(peer) as stage, snapshot(stage.place.dsn):
        # A slow peer has fewer dead rows then, which is in its favour.
        count = stage.enqueue(bench.effort.before, window_s=2 * bench.effort.fill_s).count
        with stage.crew(2, batch=BATCH) as crew:
            crew.wait(count, 2 * bench.effort.window_s)
        held = drained(bench, stage)
    return {"held": held, "ratio": held / fresh if fresh else None}


def drained(bench: Bench, stage: Stage) -> float:
    count = stage.enqueue(bench.effort.drained // 2, window_s=bench.effort.fill_s).count
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
    lasts_s=lambda effort: 2 * effort.start_s + 0.7 * (4 * effort.fill_s + 4 * effort.window_s),
)
