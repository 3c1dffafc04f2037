"""A peer: what it is, where it lives, what it can do, and how it was set up for the comparison."""

from dataclasses import dataclass
from enum import StrEnum


class Runtime(StrEnum):
    # This project's own interpreter.
    HERE = "here"
    PYTHON = "python"
    NODE = "node"


class Service(StrEnum):
    POSTGRESQL = "postgresql"
    REDIS = "redis"
    RABBITMQ = "rabbitmq"


class Feature(StrEnum):
    """What some peers have and others have not."""

    TENANTS = "tenants"
    RATE_LIMIT = "rate limit"
    CAP = "concurrency cap"
    # It needs nobody's help when a worker has died.
    RECOVERY = "recovery"
    SNAPSHOT = "lives in PostgreSQL"


@dataclass(frozen=True)
class Peer:
    """One adapter: all that the harness must know; the rest is in its program."""

    name: str
    title: str
    runtime: Runtime
    # A module in programs/, or a file there that Node runs.
    program: str
    # As pip or npm takes them, pinned.
    packages: tuple[str, ...]
    service: Service
    features: frozenset[Feature]
    # How it was set up: said beside every figure.
    settings: str
    # Where one is killed: how long a worker may be silent, as it was set; 0: a broker sees its socket closed.
    silence_s: float = 2.0
    # Its program starts the worker processes itself, as its documentation has it.
    has_pool: bool = False

    @property
    def offers(self) -> frozenset[Feature]:
        return self.features | ({Feature.SNAPSHOT} if self.service is Service.POSTGRESQL else frozenset())

    @property
    def is_ours(self) -> bool:
        return self.runtime is Runtime.HERE
