"""What a message writes and takes: bytes of WAL from enqueue to done, bytes on disk while it waits."""

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Bench, Figures, Metric, Scenario


def measure(bench: Bench, peer: Peer) -> Figures:
    count = bench.effort.costed
    with bench.stage(peer) as stage:
        before = stage.place.spent()
        stage.enqueue(count)
        waiting = stage.place.spent() - before
        with stage.crew(1) as crew:
            if not crew.wait(count, 10 * bench.effort.window_s):
                return {"wal": None, "disk": waiting.disk_bytes / count}
        done = stage.place.spent() - before
    return {"wal": done.wal_bytes / count, "disk": waiting.disk_bytes / count}


SCENARIO = Scenario(
    "space",
    "WAL and disk of a message, enqueued in bulk, drained by one process",
    (
        Metric("wal", "WAL per message", "bytes", False, bound=1.25),
        Metric("disk", "disk per waiting message", "bytes", False, bound=1.25),
    ),
    measure,
    rule="By bytes, at most 1.25 times the least.",
    needs=frozenset({Feature.SNAPSHOT}),
    lasts_s=lambda effort: effort.start_s + effort.costed / 3_000,
)
