"""A tenant with thousands of messages, then ten with 10 each: how many go before the last of these?"""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Policy, Scenario

SMALL = {f"small{number}": 10 for number in range(10)}
BIG = "big"


def measure(bench: Bench, peer: Peer) -> Figures:
    groups = [(BIG, bench.effort.big_tenant), *SMALL.items()]
    total = sum(count for _, count in groups)
    with bench.stage(peer, {tenant: Policy() for tenant, _ in groups}) as stage:
        stage.enqueue(groups)
        with stage.crew(1, is_traced=True) as crew:
            is_done = crew.wait(total, 4 * bench.effort.window_s)
            begun = crew.meter.begun()
            rate = crew.meter.rate()
    small = [number for number, event in enumerate(begun, 1) if event.tenant != BIG]
    waited = small[-1] if len(small) == sum(SMALL.values()) else None
    return {"handled": float(waited) if waited else None, "rate": rate if is_done or waited else None}


SCENARIO = Scenario(
    "fairness",
    "A tenant with 10,000, ten with 10 each, one process; 110 is the ideal",
    (
        Metric("handled", "handled until the small tenants are done", "messages", False),
        Metric("rate", "rate meanwhile", "messages/s", True, bound=None),
    ),
    measure,
)
