"""Producers and workers as processes at full speed; they return the ids of their messages."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.forked import FORK_SERVER
from tests.races.sessions import Session, ask, complete

Ids = list[int]


@dataclass(frozen=True)
class Load:
    """The parameters of a producer or worker; `until` is compared with time.time()."""

    dsn: str
    channels: int
    until: float
    batch: int
    seed: int = 0
    at_most: int = 10_000_000


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes that share nothing with the test's process."""
    with ProcessPoolExecutor(count, mp_context=FORK_SERVER) as pool:
        list(pool.map(_warm, range(count)))
        yield pool


def _warm(number: int) -> None:
    time.sleep(0.2)  # so that every process runs one


def session(dsn: str, **options: Any) -> Session:
    return psycopg.connect(dsn, **{"autocommit": True, "options": "-c search_path=lonnymq", **options})


def produce(load: Load) -> Ids:
    """Create messages without pauses; return the committed ids."""
    rng = random.Random(load.seed)
    created: Ids = []
    with session(load.dsn) as connection:
        while time.time() < load.until and len(created) < load.at_most:
            # Some tenants get many more messages than others.
            channels = [f"channel {int(load.channels * rng.random() ** 3)}" for _ in range(load.batch)]
            rows = connection.execute(
                "select message_id from message_create_many(%s::text[], %s::bytea[])",
                [channels, [b"x" * 20] * load.batch],
            )
            created += [row[0] for row in rows]
    return created


def work(load: Load) -> Ids:
    """Dequeue and complete without pauses, to the end and for a second without messages; return the ids."""
    worked: Ids = []
    idle_since = time.time()
    with session(load.dsn) as connection:
        while time.time() < max(load.until, idle_since) + 1:
            leased = ask(connection, load.batch).leased
            if leased:
                outcomes = complete(connection, leased)
                worked += [
                    one.id for one, outcome in zip(leased, outcomes, strict=True) if outcome == "completed"
                ]
                idle_since = time.time()
            elif time.time() > load.until:
                time.sleep(0.01)
    return worked


def ids_of(futures: "list[Future[Ids]]") -> Ids:
    return [one for future in futures for one in future.result()]
