"""A tenant with a rate limit of 20 messages a second, and 8 processes that could run more.

Messages are counted that begin within a whole number of seconds, from the first message on: a queue that
starts one every 50 ms and a queue that starts 20 at the beginning of each second both have exactly 20. Too
many and too few are errors alike. A gap longer than required counts as 50 ms; a queue that misses the rate by
more than a quarter has no gap. The first two seconds, in which processes start, are excluded.
"""

from itertools import pairwise

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario, TenantLimits

TENANT = "limited"
PER_S = 20
PROCESSES = 8
# An error of one message a second counts as exact, because the edges of the interval may cause it.
EXACT = 100.0 / PER_S
FAR_OFF = 25.0
EXCLUDED_S = 2.0


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    window_s = harness.effort.limited_s
    count = int(3 * PER_S * (EXCLUDED_S + window_s))
    with harness.deploy(peer, {TENANT: TenantLimits(per_s=PER_S)}) as deployment:
        deployment.enqueue([(TENANT, count)])
        with deployment.workers(PROCESSES, is_traced=True) as workers:
            workers.wait(count, EXCLUDED_S + window_s + 0.5)
            begun_s = [event.at_s for event in workers.progress.beginnings()]
    return precision([at_s for at_s in begun_s if at_s >= begun_s[0] + EXCLUDED_S], window_s)


def precision(begun_s: list[float], window_s: float) -> Figures:
    """Return the error of the rate, the rate and the smallest gap, given the ordered times."""
    begun_s = [at_s for at_s in begun_s if at_s < begun_s[0] + window_s]
    if len(begun_s) < 2:
        return {"error": None, "got": None, "gap": None}
    got = len(begun_s) / window_s
    error = 100.0 * abs(got - PER_S) / PER_S
    gap_ms = min(1000 / PER_S, *((later - sooner) * 1000 for sooner, later in pairwise(begun_s)))
    return {"error": error, "got": got, "gap": gap_ms if error <= FAR_OFF else None}


SCENARIO = Scenario(
    "rate-limit",
    "Rate limit of 20 messages a second, 8 processes",
    (
        Metric("error", "error of the rate", "%", False, enough=EXACT),
        Metric("got", "rate, of 20 allowed", "messages/s", True, bound=None),
        Metric("gap", "smallest gap, of 50 ms required", "ms", True, missing="rate too far off"),
    ),
    measure,
    rule=(
        f"By the error of the rate, where {EXACT:g} % or less counts as exact, and by the smallest gap "
        f"between two messages. A peer with an error of more than {FAR_OFF:g} % has no figure for the gap."
    ),
    needs=frozenset({Feature.RATE_LIMIT}),
    duration_s=lambda effort: 2 * effort.start_s + EXCLUDED_S + effort.limited_s,
)
