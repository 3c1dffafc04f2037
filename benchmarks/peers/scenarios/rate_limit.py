"""A tenant that may do 20 messages a second, and 8 processes that would do more.

Counted are the messages that begin in so many whole seconds, the first message's moment included and the
last moment not: who starts one every 50 ms and who starts 20 at the beginning of each second have both got
exactly 20. Too many and too few are errors alike. A gap longer than what was asked is no merit, and counts
as 50 ms; who is off the rate by more than a quarter has none. The first two seconds are left out, while
processes start.
"""

from itertools import pairwise

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Policy, Scenario

TENANT = "limited"
PER_S = 20
PROCESSES = 8
# One message a second: what the edges of the time may hide.
EXACT = 100.0 / PER_S
FAR_OFF = 25.0
START_S = 2.0


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    window_s = harness.effort.limited_s
    count = int(3 * PER_S * (START_S + window_s))
    with harness.stage(peer, {TENANT: Policy(per_s=PER_S)}) as stage:
        stage.enqueue([(TENANT, count)])
        with stage.crew(PROCESSES, is_traced=True) as crew:
            crew.wait(count, START_S + window_s + 0.5)
            begun_s = [event.at_s for event in crew.meter.begun()]
    return precision([at_s for at_s in begun_s if at_s >= begun_s[0] + START_S], window_s)


def precision(begun_s: list[float], window_s: float) -> Figures:
    """Return how far the rate is off, the rate and the smallest gap, given the moments in their order."""
    begun_s = [at_s for at_s in begun_s if at_s < begun_s[0] + window_s]
    if len(begun_s) < 2:
        return {"error": None, "got": None, "gap": None}
    got = len(begun_s) / window_s
    error = 100.0 * abs(got - PER_S) / PER_S
    gap_ms = min(1000 / PER_S, *((later - sooner) * 1000 for sooner, later in pairwise(begun_s)))
    return {"error": error, "got": got, "gap": gap_ms if error <= FAR_OFF else None}


SCENARIO = Scenario(
    "rate-limit",
    "20 messages a second asked, 8 processes",
    (
        Metric("error", "off the rate that was asked", "%", False, enough=EXACT),
        Metric("got", "messages per second, of 20 asked", "messages/s", True, bound=None),
        Metric("gap", "smallest gap, of 50 ms", "ms", True, missing="too far off the rate"),
    ),
    measure,
    rule=(
        f"By both: how far the rate is off, where {EXACT:g} % or less is exact, and the smallest gap between "
        f"two messages. Who is off by more than {FAR_OFF:g} % has no gap."
    ),
    needs=frozenset({Feature.RATE_LIMIT}),
    lasts_s=lambda effort: 2 * effort.start_s + START_S + effort.limited_s,
)
