"""The time from the enqueueing call to the handler's first line, in an idle worker, at 50 messages a second.

Percentiles are computed over the messages of all rounds together, because one round has too few for the tail.
The percentiles of each round are shown as the spread, and are compared round by round.
"""

from collections.abc import Sequence
from functools import partial

from benchmarks.peers.peer import Peer, Service
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Sampled, Scenario

PER_S = 50.0
WARM_UP = 25
PERCENTILES = (50, 95, 99)


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    count = harness.effort.latencies
    with harness.deploy(peer) as deployment, deployment.workers(1, is_traced=True) as workers:
        deployment.enqueue(WARM_UP, mode="paced", per_s=PER_S)
        workers.wait(WARM_UP)
        deployment.enqueue(count, mode="paced", per_s=PER_S)
        workers.wait(WARM_UP + count)
        # A message's tag is the time at which its sender began.
        begun = sorted(workers.progress.beginnings(), key=lambda event: int(event.tag))[WARM_UP:]
    waits_ms = [(event.at_s - int(event.tag) / 1e9) * 1000 for event in begun]
    return Sampled({f"p{part}": percentile(part, waits_ms) for part in PERCENTILES}, waits_ms)


def percentile(part: int, values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * part // 100)]


SCENARIO = Scenario(
    "latency",
    "Latency from enqueue to start, 50 messages a second, one worker process",
    tuple(
        Metric(
            f"p{part}",
            f"enqueue to start, p{part}",
            "ms",
            False,
            service=Service.POSTGRESQL,
            pool=partial(percentile, part),
        )
        for part in PERCENTILES
    ),
    measure,
    rule=(
        "By each percentile of the messages of all rounds together, in comparison with the peers that keep "
        "their messages in PostgreSQL; the spread is that of the rounds. A broker hands a message on from "
        "memory, before it is on disk."
    ),
    duration_s=lambda effort: effort.start_s + (WARM_UP + effort.latencies) / PER_S,
)
