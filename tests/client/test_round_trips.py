"""A3: one call is one round trip, and so one transaction."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import NewMessage
from tests.client.conftest import OpenQueue

# How libpq traces that the server has finished a request.
READY = "\tReadyForQuery\t"

Traced = Callable[[Any], Any]

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "enqueue": lambda queue, _: queue.enqueue("a", 1),
    "enqueue_many": lambda queue, _: queue.enqueue_many([NewMessage(channel="b", payload=n) for n in (1, 2)]),
    "dequeue": lambda queue, _: queue.dequeue(2),
    "complete": lambda queue, leased: queue.complete(leased),
    "defer": lambda queue, leased: queue.defer(leased, delay=60, state={"tries": 1}),
    "bury": lambda queue, leased: queue.bury(leased),
    "give_back": lambda queue, leased: queue.give_back(leased),
    "heartbeat": lambda queue, leased: queue.heartbeat(leased),
    "cancel": lambda queue, leased: queue.cancel([message.id for message in leased]),
    "channel.set": lambda queue, _: queue.channel("a").set(weight=2),
    "channel.explain": lambda queue, _: queue.channel("a").explain(),
    "status": lambda queue, _: queue.status(),
}


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture
def traced(trace_path: Path) -> Iterator[Traced]:
    """Make connections write their protocol messages to `trace_path` until the test ends."""
    connections: list[Any] = []
    with trace_path.open("w", encoding="utf-8") as file:

        def traced(connection: Any) -> Any:
            # Preparing a statement is a round trip of its own.
            connection.prepare_threshold = None
            connection.pgconn.trace(file.fileno())
            connections.append(connection)
            return connection

        yield traced
        for connection in connections:
            connection.pgconn.untrace()


def test_one_call_is_one_round_trip(
    dsn: str, flavour: str, open_queue: OpenQueue, traced: Traced, trace_path: Path
) -> None:
    async def connect() -> Any:
        return traced(await psycopg.AsyncConnection.connect(dsn))

    queue = open_queue((lambda: traced(psycopg.connect(dsn))) if flavour == "sync" else connect)
    counts = {}
    for name, call in CALLS.items():
        # The first call also checks the installed version.
        queue.enqueue_many([NewMessage(channel=name, payload=n) for n in range(4)])
        leased = queue.dequeue(2)
        assert len(leased) == 2
        before = round_trips(trace_path)
        call(queue, leased)
        counts[name] = round_trips(trace_path) - before
    assert counts == dict.fromkeys(CALLS, 1)


def round_trips(trace_path: Path) -> int:
    return trace_path.read_text(encoding="utf-8", errors="replace").count(READY)
