"""graphile-worker from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="graphile-worker",
    title="graphile-worker",
    runtime=Runtime.NODE,
    program="graphile_worker.mjs",
    packages=("graphile-worker@0.18.0",),
    service=Service.POSTGRESQL,
    # Jobs of a dead worker are released after four hours, or by hand. It has no feature for fairness (see its
    # issue 331); a named queue per tenant was many times slower with every setting tried.
    features=frozenset({Feature.TENANTS, Feature.CAP}),
    settings=(
        "24 concurrent jobs, a local queue of 500, batched completions; addJobs with 1,000 for bulk; a task "
        "and a runner per tenant, each with a local queue of 40, because named queues are many times slower; "
        "three named queues for a cap of 3."
    ),
)
