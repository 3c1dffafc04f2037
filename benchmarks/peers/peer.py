"""Describes a peer: its runtime, its server, its features, and its settings for the comparison."""

from dataclasses import dataclass
from enum import StrEnum


class Runtime(StrEnum):
    # The interpreter that runs the benchmark.
    THIS_PYTHON = "here"
    PYTHON = "python"
    NODE = "node"


class Service(StrEnum):
    POSTGRESQL = "postgresql"
    REDIS = "redis"
    RABBITMQ = "rabbitmq"


class Feature(StrEnum):
    """Features that only some of the peers have."""

    TENANTS = "tenants"
    RATE_LIMIT = "rate limit"
    CAP = "concurrency cap"
    # Recovers the messages of a dead worker without help.
    RECOVERY = "recovery"
    SNAPSHOT = "storage in PostgreSQL"


@dataclass(frozen=True)
class Peer:
    """An adapter: what the harness needs to know about a peer; the rest is in the peer's program."""

    name: str
    title: str
    runtime: Runtime
    # A module in programs/, or a file there for Node.
    program: str
    # Pinned packages for pip or npm.
    packages: tuple[str, ...]
    service: Service
    features: frozenset[Feature]
    # How it was set up and why; shown next to its figures.
    settings: str
    # In the scenario with a killed worker: after how many seconds of silence a worker counts as dead, as
    # configured. 0: a broker notices the closed socket.
    silence_s: float = 2.0
    # Whether its program starts the worker processes itself, as its documentation advises.
    has_pool: bool = False

    @property
    def offers(self) -> frozenset[Feature]:
        return self.features | ({Feature.SNAPSHOT} if self.service is Service.POSTGRESQL else frozenset())

    @property
    def is_ours(self) -> bool:
        return self.runtime is Runtime.THIS_PYTHON
