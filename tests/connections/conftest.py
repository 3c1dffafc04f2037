"""Connections of each library, and the client that can borrow them; tests are written once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import lonnymq
from tests.client.conftest import BlockingProxy
from tests.connections.libraries import ASYNCIO, BLOCKING, Borrowed, OpenBorrowed


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=[*BLOCKING, *ASYNCIO])
def library(request: pytest.FixtureRequest) -> str:
    library: str = request.param
    return library


@pytest.fixture
def borrow(library: str, dsn: str, runner: asyncio.Runner) -> Iterator[OpenBorrowed]:
    """A factory of connections that can be borrowed."""
    opened: list[Borrowed] = []

    def borrow(**options: Any) -> Borrowed:
        is_blocking = library in BLOCKING
        borrowed = (
            BLOCKING[library](dsn, **options) if is_blocking else ASYNCIO[library](dsn, runner, **options)
        )
        opened.append(borrowed)
        return borrowed

    yield borrow
    for borrowed in opened:
        borrowed.close()


@pytest.fixture
def borrowing_queue(library: str, dsn: str, runner: asyncio.Runner) -> Iterator[Any]:
    """The client that can borrow them: the blocking one, or the asyncio one behind a blocking proxy."""
    queue: Any = lonnymq.Queue(dsn)
    if library in ASYNCIO:
        queue = BlockingProxy(lonnymq.AsyncQueue(dsn), runner)
    yield queue
    queue.close()
