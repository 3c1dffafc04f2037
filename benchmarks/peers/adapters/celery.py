"""Celery from PyPI, with Redis and with RabbitMQ."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

SETTINGS = (
    "prefork, prefetch 128 per process, no results, no gossip; one call per message, also in bulk; a queue "
    "and a task per tenant. A rate limit applies to each worker, so each process is a worker with its part "
    "of the rate and prefetch 1; with several tenants, one worker prefetches everything. In the scenario "
    "with a killed worker: late acknowledgement, prefetch 1 per process and, with Redis, a visibility "
    "timeout of 2 s. "
)

REDIS = Peer(
    name="celery-redis",
    title="Celery, Redis",
    runtime=Runtime.PYTHON,
    program="celery",
    packages=("celery[redis]==5.7.0", "redis==8.1.0"),
    service=Service.REDIS,
    # Its rate limit applies to each worker. One worker was tried with 1 to 8 processes, with threads, and
    # with 1, 2, 4 or all messages prefetched: the more of them, the further it stays below the rate.
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.RECOVERY}),
    settings=SETTINGS + "Redis with Debian's settings, which can lose the last minutes in a crash.",
    has_pool=True,
)
RABBITMQ = Peer(
    name="celery-rabbitmq",
    title="Celery, RabbitMQ",
    runtime=Runtime.PYTHON,
    program="celery",
    packages=("celery==5.7.0",),
    service=Service.RABBITMQ,
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.RECOVERY}),
    silence_s=0.0,
    settings=SETTINGS + "RabbitMQ with Debian's settings, with publisher confirms except in bulk.",
    has_pool=True,
)
