"""Sessions with timeouts, so that a test fails instead of hanging: no call should wait for long."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Connect

# Without JIT, because compiling queue_check() takes 80 ms each time.
OPTIONS = "-c search_path=lonnymq -c lock_timeout=20s -c statement_timeout=60s -c jit=off"


@pytest.fixture
def connect(dsn: str) -> Iterator[Connect]:
    """The fixture `connect` with timeouts."""
    opened: list[psycopg.Connection[Any]] = []

    def connect(to: str | None = None, **options: Any) -> psycopg.Connection[Any]:
        connection = psycopg.connect(to or dsn, **{"autocommit": True, "options": OPTIONS, **options})
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()
