"""Three releases, and a database in which the first one is installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.migration import next_version
from tests.migration.fleet import Fleet, Releases, run


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    folder = tmp_path_factory.mktemp("releases")
    released = next_version.build_wheel(folder)
    later = next_version.make_next(released, folder)
    return Releases(released, later, next_version.make_third(later, folder))


@pytest.fixture
def released_dsn(database: Database, releases: Releases) -> str:
    """A database in which the released version is installed."""
    dsn = database(is_empty=True)
    run(releases.released, dsn, "queue.install()")
    return dsn


@pytest.fixture
def fleet(released_dsn: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(released_dsn, tmp_path)
    yield fleet
    fleet.kill()


@pytest.fixture
def connection(released_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(released_dsn, autocommit=True, options="-c search_path=lonnymq") as connection:
        yield connection
