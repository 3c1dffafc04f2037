"""A tenant with thousands of messages, then ten with 10 each: how many go before the last of these?

Fair is who has the small tenants done within three times the ideal, 330 messages: a bound that was set when
first figures were known, wide enough for every peer. Each has a share of a tenant at a time that stays
below it, found in short runs and not searched to the end. Who is not fair has no rate while being fair.
"""

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Policy, Scenario

SMALL = {f"small{number}": 10 for number in range(10)}
BIG = "big"
# The small ones' messages, and as many of the large one as of each of them.
IDEAL = sum(SMALL.values()) + max(SMALL.values())
FAIR = 3 * IDEAL


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    groups = [(BIG, harness.effort.big_tenant), *SMALL.items()]
    total = sum(count for _, count in groups)
    with harness.stage(peer, {tenant: Policy() for tenant, _ in groups}) as stage:
        stage.enqueue(groups)
        with stage.crew(1, is_traced=True) as crew:
            crew.wait(total, 2 * harness.effort.window_s)
            begun = crew.meter.begun()
            rate = crew.meter.rate()
    small = [number for number, event in enumerate(begun, 1) if event.tenant != BIG]
    handled = small[-1] if len(small) == sum(SMALL.values()) else None
    is_fair = handled is not None and handled <= FAIR
    return {"handled": None if handled is None else float(handled), "rate": rate if is_fair else None}


SCENARIO = Scenario(
    "fairness",
    "A tenant with 10,000, ten with 10 each, one process; 110 is the ideal",
    (
        Metric("handled", "handled until the small tenants are done", "messages", False, enough=IDEAL),
        Metric("rate", "rate while being fair", "messages/s", True, missing="not fair"),
    ),
    measure,
    rule=(
        f"By how many go before the small tenants are done, and by the rate. {IDEAL} is the ideal: fewer "
        "means that the large one had to wait, which is no better. Who needs more than three times as many "
        "is not fair, and has no rate."
    ),
    needs=frozenset({Feature.TENANTS}),
    lasts_s=lambda effort: effort.start_s + 1.5 * effort.window_s,
)
