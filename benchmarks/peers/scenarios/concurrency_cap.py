"""A tenant that may have 3 messages running, and 8 processes that would run more.

A cap is kept if never more than 3 ran at the same time. If so, the more of it is used the better: on average
3 should be running, as long as there are messages. Both are taken from the handlers' own begins and ends,
the average from the first tenth of the messages to the last. Who has a cap only within one process has no
such feature here.
"""

from collections.abc import Iterable

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.progress import FROM, UNTIL, Event
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Policy, Scenario

TENANT = "capped"
CAP = 3
PROCESSES = 8
SLEEP_MS = 20


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    # As many as a perfect queue would do in the time.
    count = int(harness.effort.limited_s * 1000 / SLEEP_MS * CAP)
    with harness.stage(peer, {TENANT: Policy(max_concurrency=CAP)}) as stage:
        stage.enqueue([(TENANT, count)], sleep_ms=SLEEP_MS)
        with stage.crew(PROCESSES, is_traced=True) as crew:
            crew.wait(count, 2 * harness.effort.limited_s)
            events = list(crew.meter.events)
    most, average = running(events)
    return {
        "used": 100.0 * average / CAP if most <= CAP else None,
        "over": float(max(0, most - CAP)),
        "average": average,
    }


def running(events: Iterable[Event]) -> tuple[int, float]:
    """Return how many ran at the same time, at the most and on average."""
    # Of one moment, ends first: what ended made room.
    ordered = sorted(events, key=lambda event: (event.at_s, not event.is_end))
    begun = [event.at_s for event in ordered if not event.is_end]
    if len(begun) < 2:
        return len(begun), 0.0
    from_s, until_s = (begun[int((len(begun) - 1) * part)] for part in (FROM, UNTIL))
    now = most = 0
    spent_s = 0.0
    at_s = from_s
    for event in ordered:
        # What runs until this event, as far as it is between the two moments.
        next_s = min(max(event.at_s, from_s), until_s)
        spent_s += now * (next_s - at_s)
        at_s = next_s
        now += -1 if event.is_end else 1
        most = max(most, now)
    return most, spent_s / (until_s - from_s) if until_s > from_s else 0.0


SCENARIO = Scenario(
    "concurrency-cap",
    "3 at a time asked, messages of 20 ms, 8 processes",
    (
        Metric("used", "of the 3 at a time, used", "%", True, missing="not kept"),
        Metric("over", "more than 3 at a time, at the most", "messages", False),
        Metric("average", "at a time, on average", "messages", True, bound=None),
    ),
    measure,
    rule=(
        "By both: that there were never more, and how much of it was used on average. Who exceeds it has no "
        "figure for its use."
    ),
    needs=frozenset({Feature.CAP}),
    lasts_s=lambda effort: 2 * effort.start_s + 1.5 * effort.limited_s,
)
