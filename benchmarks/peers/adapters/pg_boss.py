"""pg-boss from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pg-boss",
    title="pg-boss",
    runtime=Runtime.NODE,
    program="pg_boss.mjs",
    packages=("pg-boss@12.35.0",),
    service=Service.POSTGRESQL,
    # No rate limit: its throttling drops or merges jobs when they are sent.
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    silence_s=10.0,
    settings=(
        "batches of 500, two local workers, NOTIFY on, no pause while batches are full; insert with 1,000 "
        "for bulk; a queue per tenant with batches of 200, faster and fairer than groups; three keys of a "
        "singleton queue for a cap of 3, because groups do not enforce it across processes. In the scenario "
        "with a killed worker: heartbeats of 10 s, the minimum."
    ),
)
