"""Three releases, and a database in which the first one is installed."""

import fcntl
import os
import shutil
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
    """The releases, built by one of the processes that run tests and shared by all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "releases"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            next_version.make_releases(folder)
            (folder / "built").touch()
    return Releases(folder / "released", folder / "second", folder / "third")


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
