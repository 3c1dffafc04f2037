"""The CPU time per message: of producer, worker and server."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario

MILLION = 1_000_000


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    count = harness.effort.costed
    with harness.deploy(peer) as deployment:
        before = deployment.endpoint.spent()
        sent = deployment.enqueue(count)
        with deployment.workers(1) as workers:
            # Starting the interpreter does not count.
            started_cpu_s = workers.cpu_s()
            is_done = workers.wait(count, 10 * harness.effort.window_s)
            worker_cpu_s = workers.cpu_s() - started_cpu_s
            handled = workers.progress.total
        server = deployment.endpoint.spent() - before
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
    rule="By the sum of all three, at most 1.25 times the least; the parts are shown.",
    duration_s=lambda effort: effort.start_s + effort.costed / 3_000,
)
