"""A snapshot is held open, as by a dump or a replica, so dead rows stay and may slow a queue down.

The ratio compares a drain after many messages were processed under the snapshot with one in a fresh
deployment, both with batches of 100. A slow peer processes fewer messages before the measured drain, which is
in its favour; their number is shown next to its figures.
"""

from benchmarks.cases.held_snapshot import snapshot
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Deployment, Figures, Metric, PeerHarness, Scenario

BATCH = 100


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    before = harness.effort.messages_before
    with harness.deploy(peer) as deployment:
        fresh = measure_drain(harness, deployment)
    with harness.deploy(peer) as deployment, snapshot(deployment.endpoint.dsn):
        filled = deployment.enqueue(before, window_s=4 * harness.effort.fill_s).count
        with deployment.workers(2, batch=BATCH) as workers:
            workers.wait(filled, 3 * harness.effort.window_s)
            gone = workers.progress.total
        held = measure_drain(harness, deployment)
    ratio = held / fresh if fresh else None
    return {"held": held, "ratio": ratio, "gone": float(gone), "asked": float(before)}


def fewer_before(figures: Figures) -> str:
    """Return a remark if fewer messages than intended were processed before."""
    gone, asked = figures.get("gone") or 0.0, figures.get("asked") or 0.0
    return f"after {gone:,.0f}" if gone < asked else ""


def measure_drain(harness: PeerHarness, deployment: Deployment) -> float:
    count = deployment.enqueue(harness.effort.drained // 2, window_s=harness.effort.fill_s).count
    with deployment.workers(1, batch=BATCH) as workers:
        workers.wait(count, harness.effort.window_s)
        return workers.progress.rate()


SCENARIO = Scenario(
    "held-snapshot",
    "Drain under a held snapshot, batches of 100, one process",
    (
        Metric("held", "drain under a held snapshot", "messages/s", True, remark=fewer_before),
        Metric("ratio", "ratio to the drain without a snapshot", "", True, bound=None, remark=fewer_before),
        Metric("gone", "processed before", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By the rate under the snapshot. The ratio to the rate without a snapshot is shown but not judged: a "
        "peer that processed fewer messages before, which is noted next to the figure, has fewer dead rows."
    ),
    needs=frozenset({Feature.SNAPSHOT}),
    duration_s=lambda effort: 2 * effort.start_s + 0.5 * (6 * effort.fill_s + 5 * effort.window_s),
)
