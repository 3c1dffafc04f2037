"""A tenant with thousands of messages, then ten with 10 each: how many are handled until the ten are done?

A queue counts as fair if it finishes the small tenants within three times the ideal, 330 messages. This bound
was set after the first figures were known, and is wide enough for every peer. Where a peer has a setting for
how much of a tenant it takes at a time, a value below the bound was found in short runs. A queue that is not
fair has no rate.
"""

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario, TenantLimits

SMALL = {f"small{number}": 10 for number in range(10)}
BIG = "big"
# All messages of the small tenants, and as many of the large tenant as of each small one.
IDEAL = sum(SMALL.values()) + max(SMALL.values())
FAIR_WITHIN = 3 * IDEAL


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    groups = [(BIG, harness.effort.big_tenant), *SMALL.items()]
    total = sum(count for _, count in groups)
    with harness.deploy(peer, {tenant: TenantLimits() for tenant, _ in groups}) as deployment:
        deployment.enqueue(groups)
        with deployment.workers(1, is_traced=True) as workers:
            workers.wait(total, 2 * harness.effort.window_s)
            begun = workers.progress.beginnings()
            rate = workers.progress.rate()
    small = [number for number, event in enumerate(begun, 1) if event.tenant != BIG]
    handled = small[-1] if len(small) == sum(SMALL.values()) else None
    is_fair = handled is not None and handled <= FAIR_WITHIN
    return {"handled": None if handled is None else float(handled), "rate": rate if is_fair else None}


SCENARIO = Scenario(
    "fairness",
    "A tenant with 10,000 messages, ten with 10 each, one process; 110 is ideal",
    (
        Metric("handled", "handled until the small tenants are done", "messages", False, enough=IDEAL),
        Metric("rate", "rate of a fair queue", "messages/s", True, missing="not fair"),
    ),
    measure,
    rule=(
        f"By how many messages are handled until the small tenants are done, and by the rate. {IDEAL} is "
        "ideal; fewer means that the large tenant had to wait, which is not better. A peer that needs more "
        "than three times as many is not fair and has no rate."
    ),
    needs=frozenset({Feature.TENANTS}),
    duration_s=lambda effort: effort.start_s + 1.5 * effort.window_s,
)
