"""PostgreSQL servers for the scenarios: a single one, or a primary with a standby."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from psycopg import conninfo

from lonnymq.embedded import EmbeddedServer, binaries, embedded
from tests.chaos.evidence import connect
from tests.chaos.run import Run, Skip, wait_for
from tests.proxy import Proxy

SETTINGS = {"max_connections": "100", "max_wal_size": "256MB", "timezone": "America/Chicago"}
BASEBACKUP_S = 60.0


def start(
    run: Run, *, data_dir: Path | None = None, fsync: bool = False, settings: Mapping[str, str] | None = None
) -> EmbeddedServer:
    """Start a server for this scenario on a free port of the loopback address."""
    server = embedded(data_dir, port=0, fsync=fsync, settings={**SETTINGS, **(settings or {})})
    run.cleanup.callback(_discard, server, run.directory / f"server {server.port}.log")
    return server


def _discard(server: EmbeddedServer, log: Path) -> None:
    """Kill the server, whose data is no longer needed, and keep its log."""
    if server.is_running:
        server.kill("immediate")
    with contextlib.suppress(OSError):
        shutil.copyfile(server.log_path, log)
    server.stop()


@dataclass(frozen=True)
class Pair:
    """A primary and its standby; `replication` is the proxy between them."""

    primary: EmbeddedServer
    standby: EmbeddedServer
    replication: Proxy

    @property
    def dsn(self) -> str:
        """A DSN that leads to the server that accepts writes."""
        parts = urlsplit(self.primary.dsn)
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        netloc = f"{parts.username}:{parts.password}@{hosts}"
        return parts._replace(
            netloc=netloc, query="target_session_attrs=read-write&connect_timeout=2"
        ).geturl()

    def promote(self) -> float:
        """Promote the standby, and return the time when it was the primary."""
        with connect(self.standby.dsn) as connection:
            [is_promoted] = connection.execute("select pg_promote(true, 60)").fetchone() or [False]
        assert is_promoted, "the standby did not become a primary within 60 s"
        return time.monotonic()


def start_pair(run: Run, *, is_synchronous: bool) -> Pair:
    """Start a primary and a standby that follows it, synchronously or not."""
    home = run.directory / "primary"
    primary = start(run, data_dir=home / "data", fsync=True, settings={"wal_keep_size": "256MB"})
    run.cleanup.callback(shutil.rmtree, home, ignore_errors=True)
    replication = run.cleanup.enter_context(Proxy(primary.dsn))
    copy = back_up(run, primary, "standby")
    (copy / "standby.signal").touch()
    change_owner(copy, like=primary.data_dir)
    primary_conninfo = conninfo.make_conninfo(replication.dsn, application_name="standby")
    standby = start(run, data_dir=copy, fsync=True, settings={"primary_conninfo": primary_conninfo})
    with connect(primary.dsn) as connection:
        if is_synchronous:
            connection.execute("alter system set synchronous_standby_names = 'standby'")
            connection.execute("select pg_reload_conf()")
        sync_state = "sync" if is_synchronous else "async"
        following = "select pid from pg_stat_replication where state = 'streaming' and sync_state = %s"
        wait_for(lambda: connection.execute(following, [sync_state]).fetchone(), 30, "the standby to follow")
    return Pair(primary, standby, replication)


def back_up(run: Run, server: EmbeddedServer, name: str) -> Path:
    """Return a physical copy of the server, taken while it runs."""
    copy = run.directory / name / "data"
    copy.parent.mkdir(mode=0o755)
    run.cleanup.callback(shutil.rmtree, copy.parent, ignore_errors=True)
    subprocess.run(
        [require_program("pg_basebackup"), "-d", server.dsn, "-D", str(copy), "-X", "stream", "-c", "fast"],
        check=True,
        capture_output=True,
        timeout=BASEBACKUP_S,
    )
    change_owner(copy, like=server.data_dir)
    return copy


def require_program(name: str) -> Path:
    """Return the path of one of PostgreSQL's programs; skip the scenario if it is missing."""
    program = Path(binaries.find("auto").program(name))
    if not os.access(program, os.X_OK):
        raise Skip(f"needs {name}, which is missing at {program}")
    return program


def change_owner(directory: Path, *, like: Path) -> None:
    """Give a directory created by root to the user that PostgreSQL runs as."""
    if os.geteuid() != 0:
        return
    status = like.stat()
    for folder, folders, files in os.walk(directory):
        for name in (".", *folders, *files):
            os.lchown(Path(folder, name), status.st_uid, status.st_gid)
