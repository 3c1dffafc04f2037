"""procrastinate, from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="procrastinate",
    title="procrastinate",
    runtime=Runtime.PYTHON,
    program="procrastinate",
    packages=("procrastinate==3.10.0", "psycopg[binary]==3.3.8"),
    service=Service.POSTGRESQL,
    # A lock is a cap of one. Stalled jobs are for a periodic task of the user's to find.
    features=frozenset({Feature.TENANTS}),
    settings=(
        "concurrency 30, jobs deleted when done, LISTEN on; batch_defer of 1,000 for bulk; "
        "a queue and a lock per tenant."
    ),
)
