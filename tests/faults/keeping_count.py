"""Producers and workers who write down what the server has confirmed, where a crash cannot undo it."""

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
    """Until the server is gone: each id is written down after its commit."""
    chance = random.Random(seed)
    with Path(path).open("a") as log:
        try:
            with session(dsn) as connection:
                while True:
                    rows = connection.execute(
                        "select message_id from message_create_many(%s::text[], %s::bytea[])",
                        [chance.sample(CHANNELS, 5), [b"x"] * 5],
                    ).fetchall()
                    write(log, [row[0] for row in rows])
        except psycopg.Error:
            return


def work_into(dsn: str, path: str, lease_ms: int) -> None:
    """Writes down 'begun' before it completes and 'done' after: in between a crash may go either way."""
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
    """A worker with a pause inside each attempt: where it will be killed or stopped."""
    until = time.time() + seconds
    with Path(path).open("a") as log, session(dsn) as connection:
        while time.time() < until:
            leased = ask(connection, 4, lease_ms=lease_ms).leased
            if leased:
                complete(connection, leased)
                write(log, [one.id for one in leased])


def write(log: IO[str], ids: list[int]) -> None:
    """In one system call: a killed process has written all or nothing."""
    os.write(log.fileno(), "".join(f"{one}\n" for one in ids).encode())


def written(*paths: str) -> list[int]:
    return [int(line) for path in paths for line in Path(path).read_text().splitlines()]
