"""LonnyMQ itself."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="lonnymq",
    title="LonnyMQ",
    runtime=Runtime.THIS_PYTHON,
    program="lonnymq",
    packages=(),
    service=Service.POSTGRESQL,
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.CAP, Feature.RECOVERY}),
    settings=(
        "Worker with default settings; copy_in for bulk; a channel per tenant. In the scenario with a killed "
        "worker: the default leases of 30 s; a process counts as dead once its session has been gone for 1 s."
    ),
    silence_s=1.0,
)
