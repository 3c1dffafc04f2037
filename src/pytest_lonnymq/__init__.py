"""Fixtures for pytest: a queue of its own for each test. Loads nothing until a test asks for one.

`lonnymq_server_dsn` and `lonnymq_schema` are there to be overridden in a conftest.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lonnymq import AsyncQueue, Queue
    from lonnymq.testing import Clock


@pytest.fixture(scope="session")
def lonnymq_server_dsn() -> Iterator[str]:
    """The server on which databases are made: LONNYMQ_TEST_DSN, or one that starts itself."""
    if given := os.environ.get("LONNYMQ_TEST_DSN"):
        yield given
        return
    from lonnymq.embedded import embedded

    with embedded(fsync=False) as server:
        yield server.dsn


@pytest.fixture(scope="session")
def lonnymq_schema() -> str:
    """The schema of the queue."""
    return "lonnymq"


@pytest.fixture(scope="session")
def _lonnymq_template(lonnymq_server_dsn: str, lonnymq_schema: str) -> Iterator[str]:
    from lonnymq.testing.database import template

    with template(lonnymq_server_dsn, lonnymq_schema) as name:
        yield name


@pytest.fixture
def lonnymq_dsn(lonnymq_server_dsn: str, _lonnymq_template: str) -> Iterator[str]:
    """A database of the test's own, with an empty queue."""
    from lonnymq.testing.database import database, on_database

    with database(lonnymq_server_dsn, _lonnymq_template) as name:
        yield on_database(lonnymq_server_dsn, name)


@pytest.fixture
def lonnymq_queue(lonnymq_dsn: str, lonnymq_schema: str) -> "Iterator[Queue]":
    """The blocking client on the test's queue."""
    from lonnymq import Queue

    with Queue(lonnymq_dsn, schema=lonnymq_schema) as queue:
        yield queue


@pytest.fixture
def lonnymq_async_queue(lonnymq_dsn: str, lonnymq_schema: str) -> "AsyncQueue":
    """The asyncio client on the test's queue; close it in the test: `async with lonnymq_async_queue`."""
    from lonnymq import AsyncQueue

    return AsyncQueue(lonnymq_dsn, schema=lonnymq_schema)


@pytest.fixture
def lonnymq_clock(lonnymq_queue: "Queue") -> "Clock":
    """The clock of the test's queue, to be moved."""
    from lonnymq.testing import Clock

    return Clock(lonnymq_queue)
