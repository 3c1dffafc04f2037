"""pgqueuer, from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pgqueuer",
    title="pgqueuer",
    runtime=Runtime.PYTHON,
    program="pgqueuer",
    packages=("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    service=Service.POSTGRESQL,
    # Former versions had a rate limit; this one has none.
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "asyncpg, uvloop, batches of 100; lists of 1,000 for bulk; an entrypoint per tenant, limited to 200 "
        "at a time in batches of as many, since it waits 0.1 s for ends that do not fill a batch; batches of "
        "1 for a cap, and a look every 5 ms; heartbeats of 2 s where a worker is killed."
    ),
)
