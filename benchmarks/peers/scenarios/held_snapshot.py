"""A snapshot held open, as by a dump or a replica: dead rows stay, and must not be in the way.

The ratio compares a drain after so many messages have come and gone under the snapshot with one in a fresh
place, both with batches of 100. Who was too slow to have had so many in the time has less in its way, which
is in its favour; how many it had is said beside its figures.
"""

from benchmarks.cases.held_snapshot import snapshot
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario, Stage

BATCH = 100


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    before = harness.effort.before
    with harness.stage(peer) as stage:
        fresh = drained(harness, stage)
    with harness.stage(peer) as stage, snapshot(stage.place.dsn):
        filled = stage.enqueue(before, window_s=4 * harness.effort.fill_s).count
        with stage.crew(2, batch=BATCH) as crew:
            crew.wait(filled, 3 * harness.effort.window_s)
            gone = crew.meter.total
        held = drained(harness, stage)
    ratio = held / fresh if fresh else None
    return {"held": held, "ratio": ratio, "gone": float(gone), "asked": float(before)}


def fewer(figures: Figures) -> str:
    """Return the words for less in the way than there should be."""
    gone, asked = figures.get("gone") or 0.0, figures.get("asked") or 0.0
    return f"after {gone:,.0f}" if gone < asked else ""


def drained(harness: PeerHarness, stage: Stage) -> float:
    count = stage.enqueue(harness.effort.drained // 2, window_s=harness.effort.fill_s).count
    with stage.crew(1, batch=BATCH) as crew:
        crew.wait(count, harness.effort.window_s)
        return crew.meter.rate()


SCENARIO = Scenario(
    "held-snapshot",
    "Drain under a held snapshot, batches of 100, one process",
    (
        Metric("held", "drain under a held snapshot", "messages/s", True, remark=fewer),
        Metric("ratio", "held snapshot to none", "", True, bound=None, remark=fewer),
        Metric("gone", "come and gone under it before", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By the rate under the snapshot. Its ratio to the rate without one is information: who had fewer "
        "messages come and gone before, which is said beside the figure, has less in its way."
    ),
    needs=frozenset({Feature.SNAPSHOT}),
    lasts_s=lambda effort: 2 * effort.start_s + 0.5 * (6 * effort.fill_s + 5 * effort.window_s),
)
