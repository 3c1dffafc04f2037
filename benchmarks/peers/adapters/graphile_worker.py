"""graphile-worker, from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="graphile-worker",
    title="graphile-worker",
    runtime=Runtime.NODE,
    program="graphile_worker.mjs",
    packages=("graphile-worker@0.18.0",),
    service=Service.POSTGRESQL,
    # A named queue is a cap of one. What a dead worker had is free again after four hours.
    features=frozenset({Feature.TENANTS}),
    settings=(
        "24 concurrent jobs, a local queue of 500, completions in batches; addJobs of 1,000 for bulk; "
        "a named queue per tenant."
    ),
)
