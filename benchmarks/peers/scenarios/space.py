"""Bytes of WAL per message from enqueue to completion, and bytes on disk while it waits.

The space on disk is measured after a vacuum, whose WAL is not counted: autovacuum would remove what bulk
loading leaves behind within seconds. The space right after the load is shown as well.
"""

import psycopg

from benchmarks.peers.peer import Feature, Peer
from benchmarks.peers.scenario import Figures, Metric, PeerHarness, Scenario


def measure(harness: PeerHarness, peer: Peer) -> Figures:
    count = harness.effort.costed
    with harness.deploy(peer) as deployment:
        # Vacuum once before, so that the visibility maps of the tables are not attributed to messages.
        vacuum(deployment.endpoint.dsn)
        before = deployment.endpoint.spent()
        deployment.enqueue(count)
        loaded = deployment.endpoint.spent() - before
        vacuum(deployment.endpoint.dsn)
        after_vacuum = deployment.endpoint.spent()
        disk = {
            "disk": (after_vacuum - before).disk_bytes / count,
            "loaded": loaded.disk_bytes / count,
        }
        with deployment.workers(1) as workers:
            if not workers.wait(count, 10 * harness.effort.window_s):
                return {"wal": None, **disk}
        worked = deployment.endpoint.spent() - after_vacuum
    return {"wal": (loaded.wal_bytes + worked.wal_bytes) / count, **disk}


def vacuum(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("vacuum")


SCENARIO = Scenario(
    "space",
    "WAL and disk space per message, enqueued in bulk, drained by one process",
    (
        Metric("wal", "WAL per message", "bytes", False, bound=1.25),
        Metric("disk", "disk space per waiting message", "bytes", False, bound=1.25),
        Metric("loaded", "disk space right after the load", "bytes", False, bound=None),
    ),
    measure,
    rule=(
        "By bytes of WAL, and by bytes on disk while a message waits, after a vacuum; at most 1.25 times the "
        "least. The space right after the load is shown but not judged."
    ),
    needs=frozenset({Feature.SNAPSHOT}),
    duration_s=lambda effort: effort.start_s + effort.costed / 3_000,
)
