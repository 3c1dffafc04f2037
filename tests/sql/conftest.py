"""Sessions with a fresh queue."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Connect
from tests.sql.session import Session

Open = Callable[..., Session]


@pytest.fixture
def session(connect: Connect) -> Open:
    """A factory of sessions, each a connection of its own."""

    def session(**options: Any) -> Session:
        return Session(connect(**options))

    return session


@pytest.fixture
def queue(session: Open) -> Session:
    """One session; each call is a transaction of its own."""
    return session()
