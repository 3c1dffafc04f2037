"""What a message writes and takes: bytes of WAL from enqueue to done, bytes on disk while it waits.

While it waits is after a vacuum, which is not counted as WAL: what a way of loading has written and thrown
away is gone a second later, by autovacuum. What the disk had to hold right after the load is shown too.
"""

import psycopg

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    count = harness.effort.costed
    with harness.stage(peer) as stage:
        # Once before, too: its own maps of all tables are no message's.
        vacuum(stage.place.dsn)
        before = stage.place.spent()
        stage.enqueue(count)
        loaded = stage.place.spent() - before
        vacuum(stage.place.dsn)
        rested = stage.place.spent()
        disk = {
            "disk": (rested - before).disk_bytes / count,
            "loaded": loaded.disk_bytes / count,
        }
        with stage.crew(1) as crew:
            if not crew.wait(count, 10 * harness.effort.window_s):
                return {"wal": None, **disk}
        worked = stage.place.spent() - rested
    return {"wal": (loaded.wal_bytes + worked.wal_bytes) / count, **disk}


def vacuum(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("vacuum")


SCENARIO = Scenario(
    "space",
    "WAL and disk of a message, enqueued in bulk, drained by one process",
    (
        Metric("wal", "WAL per message", "bytes", False, bound=1.25),
        Metric("disk", "disk per waiting message", "bytes", False, bound=1.25),
        Metric("loaded", "disk right after the load", "bytes", False, bound=None),
    ),
    measure,
    rule=(
        "By bytes of WAL, and by bytes on disk while it waits, after a vacuum; at most 1.25 times the least. "
        "What the disk had to hold right after the load is information."
    ),
    needs=frozenset({Feature.SNAPSHOT}),
    lasts_s=lambda effort: effort.start_s + effort.costed / 3_000,
)
