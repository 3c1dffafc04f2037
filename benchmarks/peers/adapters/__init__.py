"""The peers, one file each, in the order of the tables."""

from benchmarks.peers.adapters import (
    celery,
    chancy,
    dramatiq,
    graphile_worker,
    lonnymq,
    pg_boss,
    pgqueuer,
    procrastinate,
)
from benchmarks.peers.peer import Peer

OURS = lonnymq.PEER
PEERS: tuple[Peer, ...] = (
    OURS,
    graphile_worker.PEER,
    pg_boss.PEER,
    pgqueuer.PEER,
    chancy.PEER,
    procrastinate.PEER,
    celery.REDIS,
    celery.RABBITMQ,
    dramatiq.PEER,
)
