"""PostgreSQL servers for the scenarios: one alone, or a primary and its standby."""

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
    """Start a server that ends with the scenario; it listens on a free port of the loopback address."""
    server = embedded(data_dir, port=0, fsync=fsync, settings={**SETTINGS, **(settings or {})})
    run.cleanup.callback(_end, server, run.directory / f"server {server.port}.log")
    return server


def _end(server: EmbeddedServer, log: Path) -> None:
    """Without ceremony: its log is kept for the reader, its data is of no further use."""
    if server.is_running:
        server.kill("immediate")
    with contextlib.suppress(OSError):
        shutil.copyfile(server.log_path, log)
    server.stop()


@dataclass(frozen=True)
class Pair:
    """A primary and its standby; `replication` is the link between them."""

    primary: EmbeddedServer
    standby: EmbeddedServer
    replication: Proxy

    @property
    def dsn(self) -> str:
        """Leads to whichever of the two accepts writes."""
        parts = urlsplit(self.primary.dsn)
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        netloc = f"{parts.username}:{parts.password}@{hosts}"
        return parts._replace(
            netloc=netloc, query="target_session_attrs=read-write&connect_timeout=2"
        ).geturl()

    def promote(self) -> float:
        """Make the standby the primary, and return when it was one."""
        with connect(self.standby.dsn) as connection:
            [is_promoted] = connection.execute("select pg_promote(true, 60)").fetchone() or [False]
        assert is_promoted, "the standby did not become a primary within 60 s"
        return time.monotonic()


def start_pair(run: Run, *, is_synchronous: bool) -> Pair:
    """Start a primary, copy it, and let the copy follow it; then commits wait for it if synchronous."""
    program = binaries.find("auto").program("pg_basebackup")
    if not os.access(program, os.X_OK):
        raise Skip(f"needs pg_basebackup, and there is none at {program}")
    home = run.directory / "primary"
    primary = start(run, data_dir=home / "data", fsync=True, settings={"wal_keep_size": "256MB"})
    run.cleanup.callback(shutil.rmtree, home, ignore_errors=True)
    replication = run.cleanup.enter_context(Proxy(primary.dsn))
    copy = run.directory / "standby" / "data"
    copy.parent.mkdir(mode=0o755)
    run.cleanup.callback(shutil.rmtree, copy.parent, ignore_errors=True)
    subprocess.run(
        [program, "-d", primary.dsn, "-D", str(copy), "-X", "stream", "-c", "fast"],
        check=True,
        capture_output=True,
        timeout=BASEBACKUP_S,
    )
    (copy / "standby.signal").touch()
    give(copy, owner=primary.data_dir)
    primary_conninfo = conninfo.make_conninfo(replication.dsn, application_name="standby")
    standby = start(run, data_dir=copy, fsync=True, settings={"primary_conninfo": primary_conninfo})
    with connect(primary.dsn) as connection:
        if is_synchronous:
            connection.execute("alter system set synchronous_standby_names = 'standby'")
            connection.execute("select pg_reload_conf()")
        sought = "sync" if is_synchronous else "async"
        following = "select pid from pg_stat_replication where state = 'streaming' and sync_state = %s"
        wait_for(lambda: connection.execute(following, [sought]).fetchone(), 30, "the standby to follow")
    return Pair(primary, standby, replication)


def give(copy: Path, *, owner: Path) -> None:
    """Hand a tree that root has made to the user that PostgreSQL runs as."""
    if os.geteuid() != 0:
        return
    status = owner.stat()
    for folder, folders, files in os.walk(copy):
        for name in (".", *folders, *files):
            os.lchown(Path(folder, name), status.st_uid, status.st_gid)
