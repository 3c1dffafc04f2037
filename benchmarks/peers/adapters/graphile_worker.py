"""graphile-worker, from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="graphile-worker",
    title="graphile-worker",
    runtime=Runtime.NODE,
    program="graphile_worker.mjs",
    packages=("graphile-worker@0.18.0",),
    service=Service.POSTGRESQL,
    # What a dead worker had is free again after four hours, or by hand. Its authors have nothing for fairness
    # (its issue 331); a named queue per tenant was many times slower with every setting tried.
    features=frozenset({Feature.TENANTS, Feature.CAP}),
    settings=(
        "24 concurrent jobs, a local queue of 500, completions in batches; addJobs of 1,000 for bulk; a task "
        "and a runner per tenant, each with a local queue of 40, because named queues are many times slower; "
        "a cap of 3 is three named queues."
    ),
)
