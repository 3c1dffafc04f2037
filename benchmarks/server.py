"""The PostgreSQL that is measured: the one place that knows how to start it."""

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
    # A benchmark shorter than two vacuum rounds proves nothing.
    "autovacuum": "on",
    "autovacuum_naptime": "1s",
    "max_connections": "120",
}
PROFILE = {
    "track_functions": "all",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
}


@dataclass
class Server:
    """Gives out fresh databases, so that no measurement meets the dead rows of another."""

    dsn: str
    is_profiled: bool = False

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        name = f"lonnymq_bench_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            # What was dirty before is not written during the measurement.
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
def serve(
    dsn: str | None, binaries: str, is_profiled: bool = False, is_warmed: bool = True
) -> Iterator[Server]:
    """An existing server, or a private one with the settings above."""
    if dsn is not None:
        yield Server(dsn, is_profiled)
        return
    settings = SETTINGS | (PROFILE if is_profiled else {})
    with embedded(binaries=binaries, settings=settings, fsync=True) as server:
        if is_warmed:
            make_wal_files(server.dsn)
        yield Server(server.dsn, is_profiled)


def make_wal_files(dsn: str, count: int = 100) -> None:
    """Has WAL files to recycle, as any server that has run for a while: making one takes long."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(count):
            connection.execute("select pg_logical_emit_message(false, 'lonnymq', 'x'), pg_switch_wal()")
        connection.execute("checkpoint")
