"""Both clients with one interface: tests are written once, in blocking style, and run with each client."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import lonnymq
from lonnymq import Batch

OpenQueue = Callable[..., Any]
OpenConnection = Callable[..., Any]


class BlockingProxy:
    """Makes an object of the asyncio client blocking: runs its coroutines to completion."""

    def __init__(self, target: Any, runner: asyncio.Runner) -> None:
        self._target, self._runner = target, runner

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not callable(attribute) or isinstance(attribute, type):
            return self._wrapped(attribute)

        def call(*arguments: Any, **options: Any) -> Any:
            result = attribute(*map(plain, arguments), **{name: plain(o) for name, o in options.items()})
            if inspect.isawaitable(result):
                result = self._runner.run(_awaited(result))
            return self._wrapped(result)

        return call

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, Batch):
            messages = tuple(BlockingProxy(message, self._runner) for message in result)
            return Batch(messages, result.outcome, result.wait_ms)
        is_ours = isinstance(
            result,
            lonnymq.AsyncAudit
            | lonnymq.AsyncChannel
            | lonnymq.AsyncDeadLetters
            | lonnymq.AsyncHistory
            | lonnymq.AsyncTenant
            | psycopg.AsyncCursor,
        )
        return BlockingProxy(result, self._runner) if is_ours else result


def plain(value: Any) -> Any:
    if isinstance(value, BlockingProxy):
        return value._target
    if isinstance(value, Batch | list):
        return [plain(one) for one in value]
    return value


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


@pytest.fixture(params=["sync", "async"])
def flavour(request: pytest.FixtureRequest) -> str:
    flavour: str = request.param
    return flavour


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def open_queue(dsn: str, flavour: str, runner: asyncio.Runner) -> Iterator[OpenQueue]:
    """A factory of clients of the test's queue."""
    opened: list[Any] = []

    def open_queue(target: Any = dsn, **options: Any) -> Any:
        queue: Any = lonnymq.Queue(target, **options)
        if flavour == "async":
            queue = BlockingProxy(lonnymq.AsyncQueue(target, **options), runner)
        opened.append(queue)
        return queue

    yield open_queue
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(open_queue: OpenQueue) -> Any:
    return open_queue()


@pytest.fixture
def open_connection(dsn: str, flavour: str, runner: asyncio.Runner) -> Iterator[OpenConnection]:
    """A factory of the caller's own connections, blocking or asyncio like the client."""
    opened: list[Any] = []

    def open_connection(**options: Any) -> Any:
        if flavour == "async":
            found = runner.run(_awaited(psycopg.AsyncConnection.connect(dsn, **options)))
            connection: Any = BlockingProxy(found, runner)
        else:
            connection = psycopg.connect(dsn, **options)
        opened.append(connection)
        return connection

    yield open_connection
    for connection in opened:
        connection.close()


@pytest.fixture
def waits() -> Iterator[Callable[[str, str], bool]]:
    """Whether a session of the database waits for a lock in a statement that contains a word."""
    opened: list[psycopg.Connection[Any]] = []

    def waits(dsn: str, word: str) -> bool:
        if not opened:
            opened.append(psycopg.connect(dsn, autocommit=True))
        found = opened[0].execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock' and query like %s",
            (f"%{word}%",),
        )
        row = found.fetchone()
        return row is not None and row[0] > 0

    yield waits
    for connection in opened:
        connection.close()
