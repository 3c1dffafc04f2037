"""Fixtures for pytest: each test gets its own queue. Nothing is loaded until a test uses one.

A conftest may override `lonnymq_server_dsn` and `lonnymq_schema`.
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
    """The server for the test databases: that of LONNYMQ_TEST_DSN, or an embedded one."""
    if dsn := os.environ.get("LONNYMQ_TEST_DSN"):
        yield dsn
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
    """A new database with an empty queue."""
    from lonnymq.testing.database import database, on_database

    with database(lonnymq_server_dsn, _lonnymq_template) as name:
        yield on_database(lonnymq_server_dsn, name)


@pytest.fixture
def lonnymq_queue(lonnymq_dsn: str, lonnymq_schema: str) -> "Iterator[Queue]":
    """The blocking client of the test's queue."""
    from lonnymq import Queue

    with Queue(lonnymq_dsn, schema=lonnymq_schema) as queue:
        yield queue


@pytest.fixture
def lonnymq_async_queue(lonnymq_dsn: str, lonnymq_schema: str) -> "AsyncQueue":
    """The asyncio client of the test's queue; the test must close it: `async with lonnymq_async_queue`."""
    from lonnymq import AsyncQueue

    return AsyncQueue(lonnymq_dsn, schema=lonnymq_schema)


@pytest.fixture
def lonnymq_clock(lonnymq_queue: "Queue") -> "Clock":
    """The clock of the test's queue, which can be moved."""
    from lonnymq.testing import Clock

    return Clock(lonnymq_queue)
