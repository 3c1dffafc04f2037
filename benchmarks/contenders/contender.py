"""What every contender can do, with the same driver style for all.

Raw psycopg, autocommit, statements prepared at their first use, binary results, arrays as literals.
Leasing needs no fsync, so dequeue runs with synchronous_commit off: ours by its own parameter, the others on
a second connection that has it off from the start, which costs them nothing.
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

# One row as dequeue gave it; the first column is the message's id.
Lease = tuple[Any, ...]


class Session(Protocol):
    """One worker's or producer's connection."""

    def create(self, channel: str) -> None: ...

    def create_many(self, channels: Sequence[str]) -> None: ...

    def dequeue(self, limit: int) -> list[Lease]:
        """No messages, if nothing is to be had at this moment."""
        ...

    def complete(self, leases: list[Lease]) -> None: ...

    def backend_pids(self) -> set[int]:
        """The server's processes that work for this session."""
        ...

    def close(self) -> None: ...


class Contender(Protocol):
    """Picklable, because sessions are opened in the worker processes."""

    @property
    def name(self) -> str: ...

    def install(self, dsn: str) -> None: ...

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        """Have so many messages wait, of one channel after the other in turn."""
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
    """An array of numbers as a literal: a tenth of the time of psycopg's list dumper."""
    return "{" + ",".join(map(str, values)) + "}"


def run_script(dsn: str, script: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(script.encode())
