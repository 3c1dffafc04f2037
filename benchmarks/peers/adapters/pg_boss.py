"""pg-boss, from npm."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="pg-boss",
    title="pg-boss",
    runtime=Runtime.NODE,
    program="pg_boss.mjs",
    packages=("pg-boss@12.35.0",),
    service=Service.POSTGRESQL,
    # Its throttling drops or merges jobs as they are sent: no rate limit of what was accepted.
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    silence_s=10.0,
    settings=(
        "batches of 500, two local workers, NOTIFY on, no pause while batches are full; insert of 1,000 for "
        "bulk; a queue per tenant with batches of 200, faster and fairer than groups; a cap of 3 is three "
        "keys of a singleton queue, since groups do not hold it across processes; heartbeats of 10 s, the "
        "least, where one is killed."
    ),
)
