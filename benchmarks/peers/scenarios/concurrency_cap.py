"""A tenant with a cap of 3 running messages, and 8 processes that could run more.

The cap is kept if never more than 3 messages ran at the same time. If it is kept, using more of it is better:
on average, 3 messages should run while there are any. Both are computed from the times at which handlers
began and ended, the average without the first and the last tenth of the messages. A peer whose cap holds only
within one process does not have this feature.
"""

from collections.abc import Iterable

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.progress import FROM, UNTIL, Event
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario, TenantLimits

TENANT = "capped"
CAP = 3
PROCESSES = 8
SLEEP_MS = 20


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    # As many as an ideal queue would process in the time.
    count = int(harness.effort.limited_s * 1000 / SLEEP_MS * CAP)
    with harness.deploy(peer, {TENANT: TenantLimits(max_concurrency=CAP)}) as deployment:
        deployment.enqueue([(TENANT, count)], sleep_ms=SLEEP_MS)
        with deployment.workers(PROCESSES, is_traced=True) as workers:
            workers.wait(count, 2 * harness.effort.limited_s)
            events = list(workers.progress.events)
    peak, average = concurrency(events)
    return {
        "used": 100.0 * average / CAP if peak <= CAP else None,
        "over": float(max(0, peak - CAP)),
        "average": average,
    }


def concurrency(events: Iterable[Event]) -> tuple[int, float]:
    """Return how many messages ran at the same time: at most, and on average."""
    # At equal times ends come first, because they make room.
    ordered = sorted(events, key=lambda event: (event.at_s, not event.is_end))
    begun = [event.at_s for event in ordered if not event.is_end]
    if len(begun) < 2:
        return len(begun), 0.0
    from_s, until_s = (begun[int((len(begun) - 1) * part)] for part in (FROM, UNTIL))
    running = peak = 0
    spent_s = 0.0
    at_s = from_s
    for event in ordered:
        # Add what ran until this event, within the measured interval.
        next_s = min(max(event.at_s, from_s), until_s)
        spent_s += running * (next_s - at_s)
        at_s = next_s
        running += -1 if event.is_end else 1
        peak = max(peak, running)
    return peak, spent_s / (until_s - from_s) if until_s > from_s else 0.0


SCENARIO = Scenario(
    "concurrency-cap",
    "Cap of 3 messages at a time, messages of 20 ms, 8 processes",
    (
        Metric("used", "use of the cap", "%", True, missing="cap not kept"),
        Metric("over", "peak above the cap", "messages", False),
        Metric("average", "average concurrency", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By whether the cap was never exceeded, and by how much of it was used on average. A peer that "
        "exceeds the cap has no figure for its use."
    ),
    needs=frozenset({Feature.CAP}),
    duration_s=lambda effort: 2 * effort.start_s + 1.5 * effort.limited_s,
)
