"""The interface of all contenders, and the way in which all of them use the driver.

Raw psycopg, autocommit, statements prepared at first use, binary results, arrays as literals. A lease need
not be durable, so dequeue runs with synchronous_commit off: LonnyMQ by a parameter, the others on a second
connection with that setting, which costs them nothing.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg.abc import QueryNoTemplate

PAYLOAD = random.Random(7).randbytes(100)
LEASE_MS = 600_000
DESIGNS = Path(__file__).resolve().parents[1] / "designs"

# A row returned by dequeue; the first column is the message's id.
Lease = tuple[Any, ...]


class Session(Protocol):
    """The connection of a worker or producer."""

    def create(self, channel: str) -> None: ...

    def create_many(self, channels: Sequence[str]) -> None: ...

    def dequeue(self, limit: int) -> list[Lease]:
        """Return no messages if none is available now."""
        ...

    def complete(self, leases: list[Lease]) -> None: ...

    def backend_pids(self) -> set[int]:
        """Return the server processes that work for this session."""
        ...

    def close(self) -> None: ...


class Contender(Protocol):
    """A queue design. It must be picklable, because worker processes open the sessions."""

    @property
    def name(self) -> str: ...

    def install(self, dsn: str) -> None: ...

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        """Insert waiting messages, alternating between the channels."""
        ...

    def session(self, dsn: str) -> Session: ...


class Wire:
    """A connection and a binary cursor on it."""

    def __init__(self, dsn: str, **settings: str) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self.connection = psycopg.connect(dsn, autocommit=True, options=options, prepare_threshold=0)
        self.cursor = self.connection.cursor(binary=True)

    def rows(self, query: QueryNoTemplate, parameters: Sequence[object] = ()) -> list[Lease]:
        return self.cursor.execute(query, parameters).fetchall()

    def run(self, query: QueryNoTemplate, parameters: Sequence[object] = ()) -> int:
        return self.cursor.execute(query, parameters).rowcount

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    def close(self) -> None:
        self.connection.close()


def array(values: Sequence[object]) -> str:
    """Return an array of numbers as a literal, ten times as fast as psycopg's list dumper."""
    return "{" + ",".join(map(str, values)) + "}"


def run_script(dsn: str, script: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(script.encode())
