"""Dramatiq, from PyPI, with RabbitMQ."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

PEER = Peer(
    name="dramatiq-rabbitmq",
    title="Dramatiq, RabbitMQ",
    runtime=Runtime.PYTHON,
    program="dramatiq",
    packages=("dramatiq[rabbitmq]==2.2.1", "pika==1.4.4"),
    service=Service.RABBITMQ,
    # Its limits need a Redis or Memcached beside the broker, and have messages fail and come again.
    features=frozenset({Feature.TENANTS, Feature.RECOVERY}),
    silence_s=0.0,
    settings=(
        "8 threads per process, 200 prefetched; a call per message, also in bulk; a queue and an actor per "
        "tenant. RabbitMQ as Debian has it; it confirms each message, but not in bulk."
    ),
    has_pool=True,
)
