"""A tenant that may do 20 messages a second, and 8 processes that would do more."""

from itertools import pairwise

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Policy, Scenario

TENANT = "limited"
PER_S = 20
PROCESSES = 8


def measure(bench: Bench, peer: Peer) -> Figures:
    window_s = bench.effort.limited_s
    count = int(3 * PER_S * window_s)
    with bench.stage(peer, {TENANT: Policy(per_s=PER_S)}) as stage:
        stage.enqueue([(TENANT, count)])
        with stage.crew(PROCESSES, is_traced=True) as crew:
            crew.wait(count, window_s + 0.5)
            every = crew.meter.begun()
    # A whole time, so that a limit that lets a second's messages go at once is not taken for none.
    begun = [event for event in every if event.at_s <= every[0].at_s + window_s]
    if len(begun) < 2:
        return {"error": None, "gap": None}
    got = (len(begun) - 1) / window_s
    gaps_ms = [(later.at_s - sooner.at_s) * 1000 for sooner, later in pairwise(begun)]
    return {"error": 100.0 * abs(got - PER_S) / PER_S, "got": got, "gap": min(gaps_ms)}


SCENARIO = Scenario(
    "rate-limit",
    "20 messages a second asked, 8 processes",
    (
        Metric("error", "off the rate that was asked", "%", False),
        Metric("got", "messages per second, of 20 asked", "messages/s", True, bound=None),
        Metric("gap", "smallest gap, of 50 ms", "ms", True),
    ),
    measure,
    needs=frozenset({Feature.RATE_LIMIT}),
)
