"""The CPU time of a message's life: its producer's, its worker's and its server's."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario

MILLION = 1_000_000


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    count = harness.effort.costed
    with harness.stage(peer) as stage:
        before = stage.place.spent()
        sent = stage.enqueue(count)
        with stage.crew(1) as crew:
            # Starting an interpreter is no part of a message's life.
            started_cpu_s = crew.cpu_s()
            is_done = crew.wait(count, 10 * harness.effort.window_s)
            worker_cpu_s = crew.cpu_s() - started_cpu_s
            handled = crew.meter.total
        server = stage.place.spent() - before
    if not is_done or server.cpu_s is None:
        return {"all": None, "worker": worker_cpu_s / handled * MILLION if handled else None}
    per_message_s = (sent.cpu_s + server.cpu_s) / count + worker_cpu_s / handled
    return {
        "all": per_message_s * MILLION,
        "server": server.cpu_s / count * MILLION,
        "worker": worker_cpu_s / handled * MILLION,
    }


SCENARIO = Scenario(
    "cpu",
    "CPU seconds per million messages, enqueued in bulk, drained by one process",
    (
        Metric("all", "CPU of producer, worker and server", "s per million", False, bound=1.25),
        Metric("server", "CPU of the server", "s per million", False, bound=None),
        Metric("worker", "CPU of the worker", "s per million", False, bound=None),
    ),
    measure,
    rule="By the sum of all three, at most 1.25 times the least; whose it is, is shown.",
    lasts_s=lambda effort: effort.start_s + effort.costed / 3_000,
)
