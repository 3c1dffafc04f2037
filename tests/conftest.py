"""One server per kind and test run, a database per test cloned from a template, and a check at its end.

With LONNYMQ_TEST_DSN all tests use an existing server (its role must be a superuser).
"""

import gc
import os
import signal
import sys
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq import Queue
from lonnymq.embedded import EmbeddedServer, embedded
from tests import memory, schema, selection
from tests.server_kinds import GIVEN_DSN, ServerKind, server_kinds

Connect = Callable[..., psycopg.Connection[Any]]
Database = Callable[..., str]

# What Spark starts, in this process and in those of examples, unless the caller has chosen something else.
os.environ.setdefault("PYSPARK_PYTHON", str(Path(__file__).parent / "spark" / "python"))
os.environ.setdefault("LONNYMQ_TEST_PYTHON", sys.executable)
memory.use_for_temporary_files()
# A shell that runs the tests in the background makes them and their children ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Not UTC, which would hide bugs with other time zones.
SERVER_SETTINGS: dict[str, str] = {
    "max_connections": "200",
    "autovacuum": "on",
    "max_wal_size": "256MB",
    "timezone": "America/Chicago",
}


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL; `dsn` is that of a superuser in the maintenance database."""

    kind: ServerKind
    dsn: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="run the tests that make test-fast runs")
    parser.addoption(
        "--heavy", action="store_true", help="run the tests that make test-heavy runs, and no others"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect without looking for garbage, and never look again at what was collected: all of it is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return selection.is_ignored(collection_path, is_fast=config.getoption("--fast")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select tests, and sort them if several processes share them."""
    is_fast, is_heavy = config.getoption("--fast"), config.getoption("--heavy")
    selected = {
        item: None for item in items if selection.is_selected(item, is_fast=is_fast, is_heavy=is_heavy)
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = selected
    if hasattr(config, "workerinput"):
        items.sort(key=selection.sort_key)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--fast"):
        terminalreporter.write_line(selection.describe_left_out())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With --dist loadgroup: run each group of tests in one process."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    # Not by marks, because xdist 3.8 silently ignores them with pytest 9.2.
    class GroupsTogether(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return selection.group_of(config.rootpath / nodeid.partition("::")[0]) or nodeid

    return GroupsTogether(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session", params=server_kinds(), ids=lambda kind: kind.name)
def server_kind(request: pytest.FixtureRequest) -> ServerKind:
    kind: ServerKind = request.param
    return kind


@pytest.fixture(scope="session")
def server(server_kind: ServerKind) -> Iterator[Server]:
    """A server that all tests share, so no test may stop it. Without fsync; for crashes see `own_server`."""
    if server_kind.binaries is None:
        assert GIVEN_DSN is not None
        yield Server(server_kind, GIVEN_DSN)
        return
    with memory.data_dir() as path:
        choice = server_kind.binaries
        with embedded(path, binaries=choice, fsync=False, settings=SERVER_SETTINGS) as started:
            yield Server(server_kind, started.dsn)


@pytest.fixture
def own_server(server_kind: ServerKind) -> Iterator[Callable[..., EmbeddedServer]]:
    """A factory of servers that a test may stop, kill and restart, with fsync by default."""
    choice = server_kind.binaries
    if choice is None:
        pytest.skip("the test needs its own server, but LONNYMQ_TEST_DSN is set")
    started: list[EmbeddedServer] = []

    def own_server(**options: Any) -> EmbeddedServer:
        settings = {**SERVER_SETTINGS, **options.pop("settings", {})}
        one = embedded(binaries=choice, settings=settings, **options)
        started.append(one)
        return one

    yield own_server
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def admin(server: Server) -> Iterator[psycopg.Connection[Any]]:
    """A superuser's connection to the maintenance database, shared by all tests to save time."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server: Server, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The name of a database with the queue installed, to which nobody is connected."""
    name = f"lonnymq_template_{uuid.uuid4().hex[:12]}"
    administer(admin, "create database {}", name)
    with psycopg.connect(on_database(server.dsn, name), autocommit=True) as connection:
        schema.install(connection)
        # The same channel ids in every run, so that creation locks never collide by chance.
        connection.execute("update lonnymq.setting set salt = 'the same for all tests'")
    yield name
    administer(admin, "drop database if exists {} with (force)", name)


@pytest.fixture
def database(
    server_kind: ServerKind, server: Server, admin: psycopg.Connection[Any], template: str
) -> Iterator[Database]:
    """A factory of databases: `database()` has the queue installed, `database(is_empty=True)` does not."""
    # A folder must not override `server_kind`: pytest would keep the server of the session.
    assert server.kind == server_kind
    names: list[str] = []
    create = "create database {} template {}"
    # Half the work of WAL-logging every page. It needs checkpoints, which are cheap only without fsync.
    if server.kind.binaries is not None and admin.info.server_version >= 150_000:
        create += " strategy file_copy"

    def database(*, is_empty: bool = False) -> str:
        name = f"lonnymq_test_{uuid.uuid4().hex[:12]}"
        names.append(name)
        administer(admin, create, name, "template0" if is_empty else template)
        return on_database(server.dsn, name)

    yield database
    for name in names:
        administer(admin, "drop database if exists {} with (force)", name)


@pytest.fixture
def dsn(database: Database, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new database with an empty queue in the schema lonnymq, whose invariants must hold at the end."""
    dsn = database()
    yield dsn
    if request.node.get_closest_marker("broken_on_purpose"):
        return
    # Without JIT, because compiling the check takes longer than most tests.
    with psycopg.connect(dsn, autocommit=True, options="-c jit=off") as connection:
        problems = connection.execute("select * from lonnymq.queue_check()").fetchall()
    assert not problems, f"queue_check() reports {problems}"


@pytest.fixture
def connect(dsn: str) -> Iterator[Connect]:
    """A factory of autocommit connections with search_path set to lonnymq, closed at the end of the test."""
    opened: list[psycopg.Connection[Any]] = []

    def connect(to: str | None = None, **options: Any) -> psycopg.Connection[Any]:
        options = {"autocommit": True, "options": "-c search_path=lonnymq", **options}
        connection = psycopg.connect(to or dsn, **options)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    """The blocking client on the test's queue."""
    with Queue(dsn) as queue:
        yield queue


def administer(admin: psycopg.Connection[Any], statement: str, *names: str) -> None:
    admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def on_database(dsn: str, name: str) -> str:
    """Return the DSN of another database with the same server and role; a URL remains a URL."""
    if "://" in dsn:
        return urlsplit(dsn)._replace(path=f"/{name}").geturl()
    return conninfo.make_conninfo(dsn, dbname=name)
