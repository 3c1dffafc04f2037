"""A tenant that may do 20 messages a second, and 8 processes that would do more."""

from itertools import pairwise

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Policy, Scenario

TENANT = "limited"
PER_S = 20
PROCESSES = 8


def measure(bench: Bench, peer: Peer) -> Figures:
    count = int(PER_S * bench.effort.limited_s)
    with bench.stage(peer, {TENANT: Policy(per_s=PER_S)}) as stage:
        stage.enqueue([(TENANT, 3 * count)])
        with stage.crew(PROCESSES, is_traced=True) as crew:
            crew.wait(count, 3 * bench.effort.limited_s)
            begun = crew.meter.begun()
    if len(begun) < 2:
        return {"error": None, "gap": None}
    # What came while processes were still starting counts too: a limit has no exceptions.
    got = (len(begun) - 1) / (begun[-1].at_s - begun[0].at_s)
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
