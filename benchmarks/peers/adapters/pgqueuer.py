"""pgqueuer from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pgqueuer",
    title="pgqueuer",
    runtime=Runtime.PYTHON,
    program="pgqueuer",
    packages=("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    service=Service.POSTGRESQL,
    # No rate limit: earlier versions had one, this version has none.
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "asyncpg, uvloop, batches of 100; lists of 1,000 for bulk; an entrypoint per tenant with "
        "concurrency 200 and batches of the same size, because it waits 0.1 s for completions that do not "
        "fill a batch; batches of 1 and polling every 5 ms for a cap. In the scenario with a killed worker: "
        "heartbeats of 2 s."
    ),
)
