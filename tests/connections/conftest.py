"""Each library's connections, lent to the client that takes them; tests are written once."""

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
def lender(request: pytest.FixtureRequest) -> str:
    lender: str = request.param
    return lender


@pytest.fixture
def lend(lender: str, dsn: str, runner: asyncio.Runner) -> Iterator[OpenLoan]:
    """A factory of loans."""
    opened: list[Loan] = []

    def lend(**options: Any) -> Loan:
        is_blocking = lender in BLOCKING
        loan = BLOCKING[lender](dsn, **options) if is_blocking else ASYNCIO[lender](dsn, runner, **options)
        opened.append(loan)
        return loan

    yield lend
    for loan in opened:
        loan.close()


@pytest.fixture
def lent_queue(lender: str, dsn: str, runner: asyncio.Runner) -> Iterator[Any]:
    """The client that takes these loans: the blocking one, or the asyncio one behind a blocking face."""
    queue: Any = lonnymq.Queue(dsn)
    if lender in ASYNCIO:
        queue = Driven(lonnymq.AsyncQueue(dsn), runner)
    yield queue
    queue.close()
