"""Connections of each library, borrowed by the client that supports them; tests are written once."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import lonnymq
from tests.client.conftest import Driven
from tests.connections.libraries import ASYNCIO, BLOCKING, Loan, OpenLoan


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=[*BLOCKING, *ASYNCIO])
def library(request: pytest.FixtureRequest) -> str:
    library: str = request.param
    return library


@pytest.fixture
def borrow(library: str, dsn: str, runner: asyncio.Runner) -> Iterator[OpenLoan]:
    """A factory of loans."""
    opened: list[Loan] = []

    def borrow(**options: Any) -> Loan:
        is_blocking = library in BLOCKING
        loan = BLOCKING[library](dsn, **options) if is_blocking else ASYNCIO[library](dsn, runner, **options)
        opened.append(loan)
        return loan

    yield borrow
    for loan in opened:
        loan.close()


@pytest.fixture
def borrowing_queue(library: str, dsn: str, runner: asyncio.Runner) -> Iterator[Any]:
    """The client that takes these loans: the blocking one, or the asyncio one behind a blocking face."""
    queue: Any = lonnymq.Queue(dsn)
    if library in ASYNCIO:
        queue = Driven(lonnymq.AsyncQueue(dsn), runner)
    yield queue
    queue.close()
