"""How fast a short and a long queue are drained.

The long queue is filled in each peer's fastest way, for a limited time. A peer that is slow at filling has a
shorter queue, which is in its favour; its length is shown.
"""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Effort, Figures, Metric, PeerHarness, Scenario

PROCESSES = 2
# Of the long queue, this many times the length of the short one is drained; the start alone is not its rate.
DRAINED_FACTOR = 10


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    short_count, long_count = harness.effort.backlogs
    short, _ = measure_drain(harness, peer, short_count, harness.effort.fill_s)
    long, filled = measure_drain(harness, peer, long_count, harness.effort.long_fill_s)
    ratio = long / short if short else None
    return {"short": short, "long": long, "ratio": ratio, "filled": float(filled), "asked": float(long_count)}


def measure_drain(harness: PeerHarness, peer: Peer, backlog: int, fill_s: float) -> tuple[float, int]:
    """Return the rate, and how long the queue was; a long queue is drained only in part."""
    with harness.deploy(peer) as deployment:
        filled = deployment.enqueue(backlog, window_s=fill_s).count
        with deployment.workers(PROCESSES) as workers:
            workers.wait(min(filled, DRAINED_FACTOR * harness.effort.backlogs[0]), harness.effort.window_s)
            return workers.progress.rate(), filled


def shorter_backlog(figures: Figures) -> str:
    """Return a remark if the long queue was shorter than intended."""
    filled, asked = figures.get("filled") or 0.0, figures.get("asked") or 0.0
    return f"of {filled:,.0f}" if filled < asked else ""


def duration_s(effort: Effort) -> float:
    return 2 * (effort.window_s + effort.start_s) + 0.7 * effort.long_fill_s


SCENARIO = Scenario(
    "backlog",
    "Drain rate with a short and a long backlog, 2 processes",
    (
        Metric("short", "drain, short backlog", "messages/s", True),
        Metric("long", "drain, long backlog", "messages/s", True, remark=shorter_backlog),
        Metric("ratio", "ratio of long to short backlog", "", True, bound=None, remark=shorter_backlog),
        Metric("filled", "length of the long backlog", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By both rates. Their ratio is shown but not judged: a peer that is slow with a short queue easily "
        "has a good ratio, and a ratio above 1 only means that the first messages are the slowest."
    ),
    duration_s=duration_s,
    is_long=True,
)
