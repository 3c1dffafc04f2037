"""Whether a long queue is slower to drain than a short one."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario

PROCESSES = 2


def measure(bench: Bench, peer: Peer) -> Figures:
    short, long = (drained(bench, peer, backlog) for backlog in bench.effort.backlogs)
    return {"short": short, "long": long, "ratio": long / short if short else None}


def drained(bench: Bench, peer: Peer, backlog: int) -> float:
    """Return the rate at the length that is named: the shorter is drained, the longer only begun."""
    with bench.stage(peer) as stage:
        stage.enqueue(backlog)
        with stage.crew(PROCESSES) as crew:
            crew.wait(min(backlog, 2 * bench.effort.backlogs[0]), bench.effort.window_s)
            return crew.meter.rate()


SCENARIO = Scenario(
    "backlog",
    "Drain rate at a short and at a long backlog, 2 processes",
    (
        Metric("short", "drain, short backlog", "messages/s", True),
        Metric("long", "drain, long backlog", "messages/s", True),
        Metric("ratio", "long backlog to short", "", True, bound=None),
    ),
    measure,
)
