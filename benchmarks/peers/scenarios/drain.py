"""No-op messages, handled from end to end by real worker processes."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario

PROCESSES = (1, 4)


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    rates = [measure_drain(harness, peer, processes) for processes in PROCESSES]
    found: dict[str, float | None] = {
        f"processes-{processes}": rate for processes, rate in zip(PROCESSES, rates, strict=True)
    }
    return found | {"scaling": rates[-1] / rates[0] if rates[0] else None}


def measure_drain(harness: PeerHarness, peer: Peer, processes: int) -> float:
    with harness.deploy(peer) as deployment:
        # A peer that is slow to fill the queue has fewer messages, which is no disadvantage.
        count = deployment.enqueue(harness.effort.drained, window_s=harness.effort.fill_s).count
        with deployment.workers(processes) as workers:
            workers.wait(count, harness.effort.window_s)
            return workers.progress.rate()


SCENARIO = Scenario(
    "drain",
    "Drain no-op messages",
    (
        *(
            Metric(
                f"processes-{processes}",
                f"drain, {processes} process{'es' * (processes > 1)}",
                "messages/s",
                True,
            )
            for processes in PROCESSES
        ),
        Metric("scaling", "ratio of four processes to one", "", True, bound=None),
    ),
    measure,
    rule=(
        "By the rates with one and with four processes. Their ratio is shown but not judged: the processes "
        "share two cores with the server, so more of them do not process more."
    ),
    duration_s=lambda effort: len(PROCESSES) * (effort.start_s + 0.7 * (effort.fill_s + effort.window_s)),
)
