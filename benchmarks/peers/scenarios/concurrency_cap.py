"""A tenant that may have 3 messages running, and 8 processes that would run more."""

from collections.abc import Iterable

from benchmarks.peers.meter import Event
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Policy, Scenario

TENANT = "capped"
CAP = 3
PROCESSES = 8
SLEEP_MS = 20


def measure(bench: Bench, peer: Peer) -> Figures:
    # As many as a perfect queue would do in the time.
    count = int(bench.effort.limited_s * 1000 / SLEEP_MS * CAP)
    with bench.stage(peer, {TENANT: Policy(max_concurrency=CAP)}) as stage:
        stage.enqueue([(TENANT, count)], sleep_ms=SLEEP_MS)
        with stage.crew(PROCESSES, is_traced=True) as crew:
            crew.wait(count, 3 * bench.effort.limited_s)
            rate, events = crew.meter.rate(), list(crew.meter.events)
    most = peak(events)
    # Who breaks the cap has not used it well.
    return {"peak": float(most), "used": 100.0 * rate * SLEEP_MS / 1000 / CAP if most <= CAP else None}


def peak(events: Iterable[Event]) -> int:
    """Return how many ran at the same time, at the most."""
    running = most = 0
    # Of one moment, ends first: what ended made room.
    for event in sorted(events, key=lambda event: (event.at_s, not event.is_end)):
        running += -1 if event.is_end else 1
        most = max(most, running)
    return most


SCENARIO = Scenario(
    "concurrency-cap",
    "3 at a time asked, messages of 20 ms, 8 processes",
    (
        Metric("peak", "at the same time, at the most, of 3", "messages", False),
        Metric("used", "of the cap used", "%", True),
    ),
    measure,
    needs=frozenset({Feature.CAP}),
)
