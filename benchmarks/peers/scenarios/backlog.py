"""How fast a short queue is drained, and how fast a long one.

The long one is filled by each peer's fastest way. Who is slow at that is stopped after a while and has a
shorter one, which is in its favour; how long it got is shown.
"""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Effort, Figures, Metric, PeerHarness, Scenario

PROCESSES = 2
# So many times the short one are drained of the long one: its first moments are not its rate.
BEGUN = 10


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    short_count, long_count = harness.effort.backlogs
    short, _ = drained(harness, peer, short_count, harness.effort.fill_s)
    long, filled = drained(harness, peer, long_count, harness.effort.long_fill_s)
    ratio = long / short if short else None
    return {"short": short, "long": long, "ratio": ratio, "filled": float(filled), "asked": float(long_count)}


def drained(harness: PeerHarness, peer: Peer, backlog: int, fill_s: float) -> tuple[float, int]:
    """Return the rate, and how long the queue was: the shorter is drained, the longer only begun."""
    with harness.stage(peer) as stage:
        filled = stage.enqueue(backlog, window_s=fill_s).count
        with stage.crew(PROCESSES) as crew:
            crew.wait(min(filled, BEGUN * harness.effort.backlogs[0]), harness.effort.window_s)
            return crew.meter.rate(), filled


def shorter(figures: Figures) -> str:
    """Return the words for a long queue that is not as long as it should be."""
    filled, asked = figures.get("filled") or 0.0, figures.get("asked") or 0.0
    return f"of {filled:,.0f}" if filled < asked else ""


def lasts_s(effort: Effort) -> float:
    return 2 * (effort.window_s + effort.start_s) + 0.7 * effort.long_fill_s


SCENARIO = Scenario(
    "backlog",
    "Drain rate at a short and at a long backlog, 2 processes",
    (
        Metric("short", "drain, short backlog", "messages/s", True),
        Metric("long", "drain, long backlog", "messages/s", True, remark=shorter),
        Metric("ratio", "long backlog to short", "", True, bound=None, remark=shorter),
        Metric("filled", "in the long backlog", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By both rates. Their ratio is information: who is slow with a short queue has a good one easily, "
        "and above 1 it says nothing but that the first messages are the slowest."
    ),
    lasts_s=lasts_s,
    is_long=True,
)
