"""Producers and workers that log what the server has confirmed, in files that survive a crash."""

import os
import random
import time
from pathlib import Path
from typing import IO

import psycopg

from tests.races.load import session
from tests.races.sessions import ask, complete

CHANNELS = [f"channel {n}" for n in range(20)]


def produce_into(dsn: str, path: str, seed: int) -> None:
    """Create messages until the server is gone; log each id after its commit."""
    rng = random.Random(seed)
    with Path(path).open("a") as log:
        try:
            with session(dsn) as connection:
                while True:
                    rows = connection.execute(
                        "select message_id from message_create_many(%s::text[], %s::bytea[])",
                        [rng.sample(CHANNELS, 5), [b"x"] * 5],
                    ).fetchall()
                    write(log, [row[0] for row in rows])
        except psycopg.Error:
            return


def work_into(dsn: str, path: str, lease_ms: int) -> None:
    """Log -id before a completion and id after it: a crash in between may have either result."""
    with Path(path).open("a") as log:
        try:
            with session(dsn) as connection:
                while True:
                    leased = ask(connection, 4, lease_ms=lease_ms).leased
                    if leased:
                        write(log, [-one.id for one in leased])
                        complete(connection, leased)
                        write(log, [one.id for one in leased])
        except psycopg.Error:
            return


def work_for(dsn: str, path: str, lease_ms: int, seconds: float) -> None:
    """Work messages for some seconds; the worker will be killed or stopped meanwhile."""
    until = time.time() + seconds
    with Path(path).open("a") as log, session(dsn) as connection:
        while time.time() < until:
            leased = ask(connection, 4, lease_ms=lease_ms).leased
            if leased:
                complete(connection, leased)
                write(log, [one.id for one in leased])


def write(log: IO[str], ids: list[int]) -> None:
    """Write in one system call, so that a killed process has written all ids or none."""
    os.write(log.fileno(), "".join(f"{one}\n" for one in ids).encode())


def read_logs(*paths: str) -> list[int]:
    return [int(line) for path in paths for line in Path(path).read_text().splitlines()]
