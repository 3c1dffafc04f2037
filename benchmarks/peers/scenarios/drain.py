"""No-op messages, handled end to end by real worker processes."""

from benchmarks.peers.peer import Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario

PROCESSES = (1, 4)


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    return {f"processes-{processes}": drained(harness, peer, processes) for processes in PROCESSES}


def drained(harness: PeerHarness, peer: Peer, processes: int) -> float:
    with harness.stage(peer) as stage:
        # Who is slow to fill has fewer, which is no disadvantage.
        count = stage.enqueue(harness.effort.drained, window_s=harness.effort.fill_s).count
        with stage.crew(processes) as crew:
            crew.wait(count, harness.effort.window_s)
            return crew.meter.rate()


SCENARIO = Scenario(
    "drain",
    "Drain no-op messages",
    tuple(
        Metric(
            f"processes-{processes}",
            f"drain, {processes} process{'es' * (processes > 1)}",
            "messages/s",
            True,
        )
        for processes in PROCESSES
    ),
    measure,
    rule="By the rates, with one process and with four.",
    lasts_s=lambda effort: len(PROCESSES) * (effort.start_s + 0.7 * (effort.fill_s + effort.window_s)),
)
