"""Dramatiq from PyPI, with RabbitMQ."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="dramatiq-rabbitmq",
    title="Dramatiq, RabbitMQ",
    runtime=Runtime.PYTHON,
    program="dramatiq",
    packages=("dramatiq[rabbitmq]==2.2.1", "pika==1.4.4"),
    service=Service.RABBITMQ,
    # Its rate limiters need Redis or Memcached in addition, and make messages fail and retry.
    features=frozenset({Feature.TENANTS, Feature.RECOVERY}),
    silence_s=0.0,
    settings=(
        "8 threads per process, prefetch 200; one call per message, also in bulk; a queue and an actor per "
        "tenant. RabbitMQ with Debian's settings, with publisher confirms except in bulk."
    ),
    has_pool=True,
)
