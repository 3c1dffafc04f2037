"""The fixtures for users, with the servers of this test run."""

import pytest

from tests.conftest import Server


@pytest.fixture(scope="session")
def lonnymq_server_dsn(server: Server) -> str:
    return server.dsn
