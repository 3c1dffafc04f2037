"""The peers, one file each, in the order of the tables."""

from benchmarks.peers.adapters import lonnymq, pgqueuer, procrastinate
from benchmarks.peers.peer import Peer

OURS = lonnymq.PEER
PEERS: tuple[Peer, ...] = (OURS, procrastinate.PEER, pgqueuer.PEER)
