"""Starts the PostgreSQL that is measured."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from lonnymq.embedded import embedded

SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "min_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "synchronous_commit": "on",
    # A benchmark should be longer than two vacuum rounds.
    "autovacuum": "on",
    "autovacuum_naptime": "1s",
    "max_connections": "120",
}
PROFILE_SETTINGS = {
    "track_functions": "all",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
}


@dataclass
class Server:
    """Provides fresh databases, so that no measurement is affected by the dead rows of another."""

    dsn: str
    is_profiled: bool = False

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        name = f"lonnymq_bench_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            # Pages that are already dirty must not be written during the measurement.
            connection.execute("checkpoint")
            connection.execute(f"create database {name}".encode())
        try:
            yield make_conninfo(self.dsn, dbname=name)
        finally:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                connection.execute(f"drop database {name} with (force)".encode())

    def settings(self) -> dict[str, str]:
        with psycopg.connect(self.dsn) as connection:
            return {
                name: str(connection.execute("select current_setting(%s)", (name,)).fetchone()[0])  # type: ignore[index]
                for name in ("server_version", "fsync", *SETTINGS)
            }


@contextlib.contextmanager
def run_server(
    dsn: str | None, binaries: str, is_profiled: bool = False, is_warmed: bool = True
) -> Iterator[Server]:
    """Use an existing server, or start a private one with the settings above."""
    if dsn is not None:
        yield Server(dsn, is_profiled)
        return
    settings = SETTINGS | (PROFILE_SETTINGS if is_profiled else {})
    with embedded(binaries=binaries, settings=settings, fsync=True) as server:
        if is_warmed:
            create_wal_files(server.dsn)
        yield Server(server.dsn, is_profiled)


def create_wal_files(dsn: str, count: int = 100) -> None:
    """Create WAL files that can be recycled, as on any server that has run for a while: new ones are slow."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(count):
            connection.execute("select pg_logical_emit_message(false, 'lonnymq', 'x'), pg_switch_wal()")
        connection.execute("checkpoint")
