"""Celery, from PyPI, with Redis and with RabbitMQ."""

from benchmarks.peers.peer import Feature, Peer, Runtime, Service

SETTINGS = (
    "prefork, 128 prefetched per process, no results, no gossip; a call per message, also in bulk; a queue "
    "and a task per tenant; a rate limit is each worker's own, so there is a worker per process with its "
    "part of the rate and one prefetched, or, beside other tenants, one worker with everything prefetched; "
    "acknowledged late, one prefetched per process and, with Redis, visible again after 2 s, where a worker "
    "is killed. "
)

REDIS = Peer(
    name="celery-redis",
    title="Celery, Redis",
    runtime=Runtime.PYTHON,
    program="celery",
    packages=("celery[redis]==5.7.0", "redis==8.1.0"),
    service=Service.REDIS,
    # Its rate limit is per worker. One worker for all processes was tried with 1 to 8 processes, threads, and
    # 1, 2, 4 or all messages prefetched: the more of either, the further it falls short of the rate.
    features=frozenset({Feature.TENANTS, Feature.RATE_LIMIT, Feature.RECOVERY}),
    settings=SETTINGS + "Redis as Debian has it, which can lose the last minutes in a crash.",
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
    settings=SETTINGS + "RabbitMQ as Debian has it; it confirms each message, but not in bulk.",
    has_pool=True,
)
