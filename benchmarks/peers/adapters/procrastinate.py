"""procrastinate from PyPI."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="procrastinate",
    title="procrastinate",
    runtime=Runtime.PYTHON,
    program="procrastinate",
    packages=("procrastinate==3.10.0", "psycopg[binary]==3.3.8"),
    service=Service.POSTGRESQL,
    features=frozenset({Feature.TENANTS, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "concurrency 30, jobs deleted when done, LISTEN on; batch_defer with 1,000 for bulk; a queue and a "
        "worker per tenant, because each fetch passes over all jobs with a lock that is taken; three locks "
        "for a cap of 3. In the scenario with a killed worker: heartbeats of 0.5 s, and the periodic task "
        "that its documentation recommends, every second."
    ),
)
