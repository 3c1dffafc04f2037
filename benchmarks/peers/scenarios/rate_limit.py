"""A tenant that may do 20 messages a second, and 8 processes that would do more.

Counted are the messages that begin in so many whole seconds, the first message's moment included and the
last moment not: who starts one every 50 ms and who starts 20 at the beginning of each second have both got
exactly 20. Too many and too few are errors alike. A gap longer than what was asked is no merit, and counts
as 50 ms.
"""

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
            begun_s = [event.at_s for event in crew.meter.begun()]
    return precision(begun_s, window_s)


def precision(begun_s: list[float], window_s: float) -> Figures:
    """Return how far the rate is off, the rate and the smallest gap, given the moments in their order."""
    begun_s = [at_s for at_s in begun_s if at_s < begun_s[0] + window_s]
    if len(begun_s) < 2:
        return {"error": None, "got": None, "gap": None}
    got = len(begun_s) / window_s
    gap_ms = min(later - sooner for sooner, later in pairwise(begun_s)) * 1000
    return {"error": 100.0 * abs(got - PER_S) / PER_S, "got": got, "gap": min(gap_ms, 1000 / PER_S)}


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
    lasts_s=lambda effort: 2 * effort.start_s + effort.limited_s,
)
