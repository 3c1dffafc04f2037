"""pg-boss, from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pg-boss",
    title="pg-boss",
    runtime=Runtime.NODE,
    program="pg_boss.mjs",
    packages=("pg-boss@12.35.0",),
    service=Service.POSTGRESQL,
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "batches of 500, two local workers, NOTIFY on, no pause while batches are full; insert of 1,000 for "
        "bulk; a group per tenant with groupConcurrency; heartbeats of 10 s, the least, where one is killed."
    ),
)
