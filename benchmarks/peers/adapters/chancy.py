"""chancy, from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="chancy",
    title="chancy",
    runtime=Runtime.PYTHON,
    program="chancy",
    packages=("chancy==0.26.0", "psycopg[binary]==3.3.8"),
    service=Service.POSTGRESQL,
    # A queue's concurrency is per worker.
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.RECOVERY}),
    settings=(
        "the asyncio executor, 200 at a time, eager polling; push_many for bulk; a queue per tenant, 200 at "
        "a time, with its rate limit; heartbeats of 1 s and recovery each second where a worker is killed."
    ),
)
