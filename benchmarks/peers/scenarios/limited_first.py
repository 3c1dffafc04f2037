"""A tenant limited to one message a second has enqueued a thousand first: are other tenants still served?"""

from benchmarks.peers.deployment import WorkerProcesses
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario, TenantLimits

LIMITED = "limited"
OTHERS = {f"other{number}": 100 for number in range(10)}
WAITING = 1_000


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    tenants = {LIMITED: TenantLimits(per_s=1)} | dict.fromkeys(OTHERS, TenantLimits())
    others = sum(OTHERS.values())
    with harness.deploy(peer, tenants) as deployment:
        deployment.enqueue([(LIMITED, WAITING), *OTHERS.items()])
        with deployment.workers(1, is_traced=True) as workers:
            workers.wait_until(lambda: len(others_began_at(workers)) == others, 2 * harness.effort.limited_s)
            begun, others_s = workers.progress.beginnings(), others_began_at(workers)
    took_s = others_s[-1] - begun[0].at_s if len(others_s) == others else None
    return {"share": 100.0 * len(others_s) / others, "took": took_s}


def others_began_at(workers: WorkerProcesses) -> list[float]:
    """Return the times at which messages of the other tenants began, in order."""
    return [event.at_s for event in workers.progress.beginnings() if event.tenant != LIMITED]


SCENARIO = Scenario(
    "limited-first",
    "A rate-limited tenant first in line, one process",
    (
        Metric("share", "other tenants' messages handled in time", "%", True),
        Metric("took", "time until the other tenants are done", "s", False),
    ),
    measure,
    rule="By whether the other tenants are served at all, and by when they are done.",
    needs=frozenset({Feature.RATE_LIMIT}),
    duration_s=lambda effort: effort.start_s + 0.5 * effort.limited_s,
)
