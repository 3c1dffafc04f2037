"""A tenant that may do one message a second has a thousand, and was first: do the others still flow?"""

from benchmarks.peers.deployment import Crew
from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Policy, Scenario

LIMITED = "limited"
OTHERS = {f"other{number}": 100 for number in range(10)}
WAITING = 1_000


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    tenants = {LIMITED: Policy(per_s=1)} | dict.fromkeys(OTHERS, Policy())
    others = sum(OTHERS.values())
    with harness.stage(peer, tenants) as stage:
        stage.enqueue([(LIMITED, WAITING), *OTHERS.items()])
        with stage.crew(1, is_traced=True) as crew:
            crew.wait_until(lambda: len(flowed(crew)) == others, 2 * harness.effort.limited_s)
            begun, flowed_s = crew.meter.begun(), flowed(crew)
    took_s = flowed_s[-1] - begun[0].at_s if len(flowed_s) == others else None
    return {"share": 100.0 * len(flowed_s) / others, "took": took_s}


def flowed(crew: Crew) -> list[float]:
    """Return when messages of the others began, in that order."""
    return [event.at_s for event in crew.meter.begun() if event.tenant != LIMITED]


SCENARIO = Scenario(
    "limited-first",
    "A rate-limited tenant first in line, one process",
    (
        Metric("share", "of the others, handled in the time", "%", True),
        Metric("took", "until the others are done", "s", False),
    ),
    measure,
    rule="By whether the others come through at all, and by when they are done.",
    needs=frozenset({Feature.RATE_LIMIT}),
    lasts_s=lambda effort: effort.start_s + 0.5 * effort.limited_s,
)
