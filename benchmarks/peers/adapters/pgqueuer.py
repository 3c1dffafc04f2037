"""pgqueuer, from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pgqueuer",
    title="pgqueuer",
    runtime=Runtime.PYTHON,
    program="pgqueuer",
    packages=("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    service=Service.POSTGRESQL,
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "asyncpg, uvloop, batches of 100; lists of 1,000 for bulk; an entrypoint per tenant, with its limit; "
        "heartbeats of 2 s where a worker is killed."
    ),
)
