"""chancy from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="chancy",
    title="chancy",
    runtime=Runtime.PYTHON,
    program="chancy",
    packages=("chancy==0.26.0", "psycopg[binary]==3.3.8"),
    service=Service.POSTGRESQL,
    # No cap: a queue's concurrency applies to each worker.
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.RECOVERY}),
    settings=(
        "asyncio executor, concurrency 200, eager polling; push_many for bulk; a queue per tenant with "
        "concurrency 200 and its rate limit. In the scenario with a killed worker: heartbeats of 1 s, "
        "recovery every second."
    ),
)
